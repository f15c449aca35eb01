import { type CharSet, charSet } from './char-set.ts'
import { readClass, readEscape, Reader } from './parse-class.ts'
import { type Assertion, type Dialect, type Node, PatternError } from './syntax.ts'

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
 * Reads a pattern into a tree: what ECMA-262 and RE2 have in common, and of each what the other has not
 * (`(?<name>…)`, `\u{…}`; `(?i)`, `(?P<name>…)`, `\A`, `\z`, `[[:alpha:]]`, `\Q…\E`).
 *
 * @throws {PatternError} for what is no pattern, and for backreferences and looking behind, which no automaton can do
 */
export function parsePattern(text: string, dialect: Dialect): Node {
  if (text.length > MAX_LENGTH) throw new PatternError(`it has more than ${MAX_LENGTH} characters`)
  const reader = new Reader(text, dialect)
  const node = readChoice(reader, NO_FLAGS, 0)
  if (!reader.isOver) throw new PatternError('it closes a group that it did not open')
  return node
}

function readChoice(reader: Reader, flags: Flags, depth: number): Node {
  if (depth > MAX_NESTING) throw new PatternError(`it nests more than ${MAX_NESTING} groups`)
  const scope = { flags }
  const options = [readSequence(reader, scope, depth)]
  while (reader.take('|')) options.push(readSequence(reader, scope, depth))
  return options.length === 1 ? (options[0] as Node) : { kind: 'choice', options }
}

/** `(?i)` holds to the end of its group, over the alternatives too. */
interface Scope {
  flags: Flags
}

function readSequence(reader: Reader, scope: Scope, depth: number): Node {
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

function readAtom(reader: Reader, scope: Scope, depth: number): Node | undefined {
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
  const escape = readEscape(reader)
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
const DOTS: Readonly<Record<Dialect, CharSet>> = {
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

function readGroup(reader: Reader, scope: Scope, depth: number): Node | undefined {
  if (reader.match(/\?<[=!]/y)) throw new PatternError('it looks behind')
  if (reader.take('?>')) throw new PatternError('it has an atomic group')
  if (reader.take('?P=')) throw new PatternError('it has a backreference')
  if (reader.match(/\?#[^)]*\)/y)) return undefined
  const look = reader.match(/\?[=!]/y)?.[0]
  if (look)
    return { kind: 'look', negative: look === '?!', body: closed(reader, readChoice(reader, scope.flags, depth + 1)) }
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
function readFlags(reader: Reader, flags: Flags): Flags | undefined {
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

function closed(reader: Reader, node: Node): Node {
  if (!reader.take(')')) throw new PatternError('it opens a group that it does not close')
  return node
}

function readRepeat(reader: Reader, body: Node, { swapLazy }: Flags): Node {
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
