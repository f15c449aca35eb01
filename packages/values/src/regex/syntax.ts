import { casesOf } from './case-folding.ts'

export type Assertion = 'text start' | 'text end' | 'line start' | 'line end' | 'word boundary' | 'no word boundary'

/** A pattern as a tree. */
export type Node =
  | { readonly kind: 'set'; readonly set: CharSet }
  | { readonly kind: 'assertion'; readonly assertion: Assertion }
  | LookAround
  | { readonly kind: 'sequence'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly options: readonly Node[] }
  | { readonly kind: 'repeat'; readonly body: Node; readonly min: number; readonly max: number; readonly lazy: boolean }

/** Looks ahead or behind, and consumes nothing. */
export interface LookAround {
  readonly kind: 'look'
  readonly direction: 'ahead' | 'behind'
  readonly negative: boolean
  readonly body: Node
}

/** `ecma` is ECMA-262 with the flag `u`, as in JSON Schema; `re2` is the syntax of RE2. They differ in `.`, `\s` and `[]`. */
export type PatternDialect = 'ecma' | 're2'

/** Thrown for an unsupported pattern. The message is safe to show. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
}

/** A set of code points. */
export interface CharSet {
  /** Equal for sets with equal parts. */
  readonly key: string
  has(codePoint: number): boolean
}

/** The parts of a set: ranges, other sets (`\d`, `\p{L}`), and whether it ignores case or is negated. */
interface CharSetParts {
  /** Pairs of the first and the last code point. */
  readonly ranges: readonly (readonly [first: number, last: number])[]
  readonly sets?: readonly CharSet[]
  readonly negated?: boolean
  readonly ignoreCase?: boolean
}

export function charSet({ ranges, sets = [], negated = false, ignoreCase = false }: CharSetParts): CharSet {
  const sorted = ranges.toSorted(([a], [b]) => a - b)
  const holds = (codePoint: number) =>
    sorted.some(([first, last]) => codePoint >= first && codePoint <= last) || sets.some((set) => set.has(codePoint))
  const matches = ignoreCase ? (codePoint: number) => casesOf(codePoint).some(holds) : holds
  const texts = [...sorted.map(([first, last]) => `${first}-${last}`), ...sets.map(({ key }) => key)]
  return {
    key: `${negated ? '^' : ''}${ignoreCase ? 'i' : ''}[${texts.join(' ')}]`,
    has: (codePoint) => matches(codePoint) !== negated,
  }
}

/** Returns a set that ignores case. A negated word set stays the complement of the word set. */
export function folded(set: CharSet): CharSet {
  return { key: `i(${set.key})`, has: (codePoint) => casesOf(codePoint).some(set.has) }
}

const DIGITS: readonly (readonly [number, number])[] = [[48, 57]]
const WORDS: readonly (readonly [number, number])[] = [
  [48, 57],
  [65, 90],
  [95, 95],
  [97, 122],
]
/** ECMA-262: WhiteSpace and LineTerminator. */
const SPACES: readonly (readonly [number, number])[] = [
  [9, 13],
  [32, 32],
  [160, 160],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]
const ASCII_SPACES: readonly (readonly [number, number])[] = [
  [9, 10],
  [12, 13],
  [32, 32],
]

/** `\d`, `\w`, `\s` and their opposites. */
export const PERL_SETS: Readonly<Record<'ecma' | 're2', ReadonlyMap<string, CharSet>>> = {
  ecma: perlSets(SPACES),
  re2: perlSets(ASCII_SPACES),
}

function perlSets(spaces: typeof SPACES): ReadonlyMap<string, CharSet> {
  const pair = (letter: string, ranges: typeof SPACES): [string, CharSet][] => [
    [letter, charSet({ ranges })],
    [letter.toUpperCase(), charSet({ ranges, negated: true })],
  ]
  return new Map([...pair('d', DIGITS), ...pair('w', WORDS), ...pair('s', spaces)])
}

const [UPPER, LOWER]: readonly (readonly [number, number])[] = [
  [65, 90],
  [97, 122],
] as const

/** Classes such as `[[:alpha:]]`, as in RE2. */
export const POSIX_SETS: ReadonlyMap<string, CharSet> = new Map(
  Object.entries({
    alnum: [...DIGITS, UPPER, LOWER],
    alpha: [UPPER, LOWER],
    ascii: [[0, 127]],
    blank: [
      [9, 9],
      [32, 32],
    ],
    cntrl: [
      [0, 31],
      [127, 127],
    ],
    digit: DIGITS,
    graph: [[33, 126]],
    lower: [LOWER],
    print: [[32, 126]],
    punct: [
      [33, 47],
      [58, 64],
      [91, 96],
      [123, 126],
    ],
    space: [
      [9, 13],
      [32, 32],
    ],
    upper: [UPPER],
    word: WORDS,
    xdigit: [...DIGITS, [65, 70], [97, 102]],
  } as Record<string, typeof SPACES>).map(([name, ranges]) => [name, charSet({ ranges })]),
)

/** There are few names; each is compiled once. */
const properties = new Map<string, RegExp>()

/** Returns the set of a Unicode property, by its name in ECMA-262 or in RE2 (`\pL`, `\p{Greek}`). */
export function propertySet(name: string, negated: boolean): CharSet | undefined {
  const native = properties.get(name) ?? nativeClass(`^\\p{${name}}$`) ?? nativeClass(`^\\p{Script=${name}}$`)
  if (!native) return undefined
  properties.set(name, native)
  return {
    key: `${negated ? 'P' : 'p'}{${name}}`,
    has: (codePoint) => native.test(String.fromCodePoint(codePoint)) !== negated,
  }
}

/** A class of one character takes the same time in any engine. */
function nativeClass(source: string): RegExp | undefined {
  try {
    return new RegExp(source, 'u')
  } catch {
    return undefined
  }
}

export function isWord(codePoint: number): boolean {
  return (
    (codePoint >= 97 && codePoint <= 122) ||
    (codePoint >= 65 && codePoint <= 90) ||
    (codePoint >= 48 && codePoint <= 57) ||
    codePoint === 95
  )
}
