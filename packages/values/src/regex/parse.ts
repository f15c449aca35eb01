import {
  type Assertion,
  type CharSet,
  charSet,
  type PatternDialect,
  folded,
  type Node,
  PatternError,
  PERL_SETS,
  POSIX_SETS,
  propertySet,
} from './syntax.ts'

const MAX_NESTING = 200
const MAX_LENGTH = 10_000

interface Flags {
  readonly ignoreCase: boolean
  readonly multiline: boolean
  readonly dotAll: boolean
  readonly swapLazy: boolean
}

const NO_FLAGS: Flags = { ignoreCase: false, multiline: false, dotAll: false, swapLazy: false }
const FLAG_NAMES: ReadonlyMap<string, keyof Flags> = new Map([
  ['i', 'ignoreCase'],
  ['m', 'multiline'],
  ['s', 'dotAll'],
  ['U', 'swapLazy'],
])

/**
 * Parses a pattern of ECMA-262 or RE2 into a tree. Both dialects may use the other's extensions: `(?<name>…)`, `\u{…}`;
 * `(?i)`, `(?P<name>…)`, `\A`, `\z`, `[[:alpha:]]`, `\Q…\E`.
 *
 * @throws {PatternError} for an invalid pattern, and for backreferences, which no automaton can run
 */
export function parsePattern(text: string, dialect: PatternDialect): Node {
  if (text.length > MAX_LENGTH) throw new PatternError(`it has more than ${MAX_LENGTH} characters`)
  const reader = new PatternReader(text, dialect)
  const node = readChoice(reader, NO_FLAGS, 0)
  if (!reader.isOver) throw new PatternError('it closes a group that it did not open')
  return node
}

function readChoice(reader: PatternReader, flags: Flags, depth: number): Node {
  if (depth > MAX_NESTING) throw new PatternError(`it nests more than ${MAX_NESTING} groups`)
  const scope = { flags }
  const options = [readSequence(reader, scope, depth)]
  while (reader.take('|')) options.push(readSequence(reader, scope, depth))
  return options.length === 1 ? (options[0] as Node) : { kind: 'choice', options }
}

/** `(?i)` applies to the end of its group, across its alternatives. */
interface FlagScope {
  flags: Flags
}

function readSequence(reader: PatternReader, scope: FlagScope, depth: number): Node {
  const parts: Node[] = []
  while (!reader.isOver && !/[|)]/.test(reader.text[reader.at] as string)) {
    const quoted = reader.match(/\\Q([^]*?)(?:\\E|$)/y)?.[1]
    if (quoted !== undefined)
      parts.push(...Array.from(quoted, (character) => one(character.codePointAt(0) as number, scope.flags)))
    else {
      const atom = readAtom(reader, scope, depth)
      if (atom) parts.push(readRepeat(reader, atom, scope.flags))
    }
  }
  return parts.length === 1 ? (parts[0] as Node) : { kind: 'sequence', parts }
}

function readAtom(reader: PatternReader, scope: FlagScope, depth: number): Node | undefined {
  const { flags } = scope
  if (reader.take('(')) return readGroup(reader, scope, depth)
  if (reader.take('[')) return { kind: 'set', set: readClass(reader, flags.ignoreCase) }
  if (reader.take('^')) return assertion(flags.multiline ? 'line start' : 'text start')
  if (reader.take('$')) return assertion(flags.multiline ? 'line end' : 'text end')
  if (reader.take('.')) return { kind: 'set', set: flags.dotAll ? ANY : DOTS[reader.dialect] }
  if (reader.match(/[*+?]|\{\d+(?:,\d*)?\}/y)) throw new PatternError('it repeats nothing')
  if (!reader.take('\\')) return one(reader.next(), flags)
  for (const [letter, kind] of ASSERTIONS) if (reader.take(letter)) return assertion(kind)
  if (reader.match(/k[<']/y)) throw new PatternError('it has a backreference')
  const escape = readEscape(reader, flags.ignoreCase)
  return typeof escape === 'number' ? one(escape, flags) : { kind: 'set', set: escape }
}

const ASSERTIONS: readonly (readonly [letter: string, kind: Assertion])[] = [
  ['b', 'word boundary'],
  ['B', 'no word boundary'],
  ['A', 'text start'],
  ['z', 'text end'],
  ['Z', 'text end'],
]
const ANY: CharSet = charSet({ ranges: [[0, 0x10ffff]] })
const DOTS: Readonly<Record<PatternDialect, CharSet>> = {
  ecma: charSet({
    ranges: [
      [10, 10],
      [13, 13],
      [0x2028, 0x2029],
    ],
    negated: true,
  }),
  re2: charSet({ ranges: [[10, 10]], negated: true }),
}

function readGroup(reader: PatternReader, scope: FlagScope, depth: number): Node | undefined {
  if (reader.take('?>')) throw new PatternError('it has an atomic group')
  if (reader.take('?P=')) throw new PatternError('it has a backreference')
  if (reader.match(/\?#[^)]*\)/y)) return undefined
  const look = reader.match(/\?(<?)([=!])/y)
  if (look)
    return {
      kind: 'look',
      direction: look[1] === '<' ? 'behind' : 'ahead',
      negative: look[2] === '!',
      body: closed(reader, readChoice(reader, scope.flags, depth + 1)),
    }
  const flags = readFlags(reader, scope.flags)
  if (flags && reader.take(')')) {
    scope.flags = flags
    return undefined
  }
  if (flags) reader.take(':')
  else if (!reader.take('?:')) reader.match(/\?P?<[A-Za-z_$][\w$]*>/y)
  return closed(reader, readChoice(reader, flags ?? scope.flags, depth + 1))
}

/** `(?i)`, `(?i-s:…)`. */
function readFlags(reader: PatternReader, flags: Flags): Flags | undefined {
  const found = reader.match(/\?(?=[a-zA-Z-]+[:)])(?!P?[<=])([a-zA-Z]*)(?:-([a-zA-Z]+))?(?=[:)])/y)
  if (!found) return undefined
  const set = (letters: string, on: boolean) =>
    Array.from(letters, (letter) => {
      const name = FLAG_NAMES.get(letter)
      if (!name) throw new PatternError(`it has the unknown flag ${letter}`)
      return [name, on] as const
    })
  return { ...flags, ...Object.fromEntries([...set(found[1] ?? '', true), ...set(found[2] ?? '', false)]) }
}

function closed(reader: PatternReader, node: Node): Node {
  if (!reader.take(')')) throw new PatternError('it opens a group that it does not close')
  return node
}

function readRepeat(reader: PatternReader, body: Node, { swapLazy }: Flags): Node {
  const found = reader.match(/([*+?])|\{(\d+)(?:(,)(\d*))?\}/y)
  if (!found) return body
  const [, sign, from = '', comma, to = ''] = found
  const min = sign ? (sign === '+' ? 1 : 0) : Number(from)
  const max = sign ? (sign === '?' ? 1 : Infinity) : comma === undefined ? min : to === '' ? Infinity : Number(to)
  if (max < min) throw new PatternError('it has a repeat whose end is below its beginning')
  const lazy = reader.take('?') !== swapLazy
  if (reader.match(/[*+?]|\{\d+(?:,\d*)?\}/y)) throw new PatternError('it repeats a repeat')
  return { kind: 'repeat', body, min, max, lazy }
}

function assertion(kind: Assertion): Node {
  return { kind: 'assertion', assertion: kind }
}

const ASCII_NODES: readonly Node[] = Array.from({ length: 128 }, (_, code) => setOf(code, false))

function one(codePoint: number, { ignoreCase }: Flags): Node {
  return (ignoreCase ? undefined : ASCII_NODES[codePoint]) ?? setOf(codePoint, ignoreCase)
}

function setOf(codePoint: number, ignoreCase: boolean): Node {
  return { kind: 'set', set: charSet({ ranges: [[codePoint, codePoint]], ignoreCase }) }
}

/** Reads a pattern from its beginning to its end. */
class PatternReader {
  readonly text: string
  readonly dialect: PatternDialect
  at = 0

  constructor(text: string, dialect: PatternDialect) {
    this.text = text
    this.dialect = dialect
  }

  get isOver(): boolean {
    return this.at >= this.text.length
  }

  /** Consumes a text if it is next. */
  take(expected: string): boolean {
    if (!this.text.startsWith(expected, this.at)) return false
    this.at += expected.length
    return true
  }

  /** Consumes the match of a sticky expression, and returns it. */
  match(sticky: RegExp): RegExpExecArray | undefined {
    sticky.lastIndex = this.at
    const found = sticky.exec(this.text)
    if (!found) return undefined
    this.at = sticky.lastIndex
    return found
  }

  /** Consumes one code point. */
  next(): number {
    const codePoint = this.text.codePointAt(this.at)
    if (codePoint === undefined) throw new PatternError('it ends too early')
    this.at += codePoint > 0xffff ? 2 : 1
    return codePoint
  }
}

const WORD = folded(PERL_SETS.ecma.get('w') as CharSet)
const CONTROLS: ReadonlyMap<string, number> = new Map([
  ['t', 9],
  ['n', 10],
  ['v', 11],
  ['f', 12],
  ['r', 13],
  ['a', 7],
])
const HEX =
  /x([0-9A-Fa-f]{2})|[xu]\{([0-9A-Fa-f]{1,6})\}|u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u([0-9A-Fa-f]{4})/iy
const PROPERTY = /([pP])(?:\{(\^?)([A-Za-z0-9_=]{1,60})\}|([A-Za-z]))/y

/** With the flag `i`, `\w` of ECMA-262 also has the letters that fold to `s` and `k`. RE2 has ASCII alone. */
const FOLDED: typeof PERL_SETS = {
  ecma: new Map(PERL_SETS.ecma).set('w', WORD).set('W', charSet({ ranges: [], sets: [WORD], negated: true })),
  re2: PERL_SETS.re2,
}

/** Reads an escape after its backslash. Returns a code point or a set of them. */
function readEscape(reader: PatternReader, ignoreCase: boolean): number | CharSet {
  const hex = reader.match(HEX)
  if (hex) return fromHex(hex)
  const property = reader.match(PROPERTY)
  if (property) return ignoreCase ? folded(readProperty(property)) : readProperty(property)
  if (reader.match(/c[A-Za-z]/y)) return reader.text.charCodeAt(reader.at - 1) % 32
  if (reader.match(/0(?![0-9])/y)) return 0
  const codePoint = reader.next()
  const letter = String.fromCodePoint(codePoint)
  const known = (ignoreCase ? FOLDED : PERL_SETS)[reader.dialect].get(letter) ?? CONTROLS.get(letter)
  if (known !== undefined) return known
  if (/[1-9]/.test(letter)) throw new PatternError('it has a backreference')
  if (/[A-Za-z0]/.test(letter)) throw new PatternError(`it has the unknown escape \\${letter}`)
  return codePoint
}

function fromHex([, two, braced, high, low, four]: RegExpExecArray): number {
  if (high !== undefined && low !== undefined)
    return ((Number.parseInt(high, 16) - 0xd800) << 10) + (Number.parseInt(low, 16) - 0xdc00) + 0x10000
  const codePoint = Number.parseInt(two ?? braced ?? four ?? '', 16)
  if (codePoint > 0x10ffff) throw new PatternError('it has an escape beyond the last code point')
  return codePoint
}

function readProperty([, letter, caret, long, short]: RegExpExecArray): CharSet {
  const name = long ?? short ?? ''
  const set = propertySet(name, (letter === 'P') !== (caret === '^'))
  if (!set) throw new PatternError(`it has the unknown property ${name}`)
  return set
}

/** Reads a class after its `[`. */
function readClass(reader: PatternReader, ignoreCase: boolean): CharSet {
  const negated = reader.take('^')
  const ranges: [number, number][] = []
  const sets: CharSet[] = []
  // In RE2 a leading `]` is a literal; in ECMA-262 it ends an empty class.
  if (reader.dialect === 're2' && reader.take(']')) ranges.push([93, readRangeEnd(reader, 93, sets, ignoreCase)])
  while (!reader.take(']')) {
    const first = readMember(reader, ignoreCase)
    if (typeof first === 'number') ranges.push([first, readRangeEnd(reader, first, sets, ignoreCase)])
    else sets.push(first)
  }
  return charSet({ ranges, sets, negated, ignoreCase })
}

function readMember(reader: PatternReader, ignoreCase: boolean): number | CharSet {
  const posix = reader.match(/\[:(\^?)([a-z]+):\]/y)
  if (posix) {
    const set = POSIX_SETS.get(posix[2] as string)
    if (!set) throw new PatternError(`it has the unknown class ${posix[0]}`)
    return posix[1] === '^' ? charSet({ ranges: [], sets: [set], negated: true }) : set
  }
  if (!reader.take('\\')) return reader.next()
  if (reader.take('b')) return 8
  return readEscape(reader, ignoreCase)
}

/** Returns the end of a range, or the character itself if there is no range. A `-` before a set is a literal. */
function readRangeEnd(reader: PatternReader, first: number, sets: CharSet[], ignoreCase: boolean): number {
  if (!reader.match(/-(?!\])/y)) return first
  const last = readMember(reader, ignoreCase)
  if (typeof last !== 'number') {
    sets.push(last, charSet({ ranges: [[45, 45]] }))
    return first
  }
  if (last < first) throw new PatternError('it has a range whose end comes before its beginning')
  return last
}
