import { type CharSet, charSet, PERL_SETS, POSIX_SETS, propertySet } from './char-set.ts'
import { type Dialect, PatternError } from './syntax.ts'

/** Reads a pattern from its beginning to its end. */
export class Reader {
  readonly text: string
  readonly dialect: Dialect
  at = 0

  constructor(text: string, dialect: Dialect) {
    this.text = text
    this.dialect = dialect
  }

  get isOver(): boolean {
    return this.at >= this.text.length
  }

  /** Steps over a text where it stands here. */
  take(expected: string): boolean {
    if (!this.text.startsWith(expected, this.at)) return false
    this.at += expected.length
    return true
  }

  /** Steps over what a sticky expression matches here, and gives the match. */
  match(sticky: RegExp): RegExpExecArray | undefined {
    sticky.lastIndex = this.at
    const found = sticky.exec(this.text)
    if (!found) return undefined
    this.at = sticky.lastIndex
    return found
  }

  /** Steps over one code point. */
  next(): number {
    const codePoint = this.text.codePointAt(this.at)
    if (codePoint === undefined) throw new PatternError('it ends too early')
    this.at += codePoint > 0xffff ? 2 : 1
    return codePoint
  }
}

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

/** Gives what an escape stands for, behind its backslash: a code point, or a set of them. */
export function readEscape(reader: Reader): number | CharSet {
  const hex = reader.match(HEX)
  if (hex) return fromHex(hex)
  const property = reader.match(PROPERTY)
  if (property) return readProperty(property)
  if (reader.match(/c[A-Za-z]/y)) return reader.text.charCodeAt(reader.at - 1) % 32
  if (reader.match(/0(?![0-9])/y)) return 0
  const codePoint = reader.next()
  const letter = String.fromCodePoint(codePoint)
  const known = PERL_SETS[reader.dialect].get(letter) ?? CONTROLS.get(letter)
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

/** Reads a class behind its `[`. */
export function readClass(reader: Reader, ignoreCase: boolean): CharSet {
  const negated = reader.take('^')
  const ranges: [number, number][] = []
  const sets: CharSet[] = []
  // RE2 has a `]` that comes first stand for itself, ECMA-262 an empty class.
  if (reader.dialect === 're2' && reader.take(']')) ranges.push([93, readRangeEnd(reader, 93, sets)])
  while (!reader.take(']')) {
    const first = readMember(reader)
    if (typeof first === 'number') ranges.push([first, readRangeEnd(reader, first, sets)])
    else sets.push(first)
  }
  return charSet({ ranges, sets, negated, ignoreCase })
}

function readMember(reader: Reader): number | CharSet {
  const posix = reader.match(/\[:(\^?)([a-z]+):\]/y)
  if (posix) {
    const set = POSIX_SETS.get(posix[2] as string)
    if (!set) throw new PatternError(`it has the unknown class ${posix[0]}`)
    return posix[1] === '^' ? charSet({ ranges: [], sets: [set], negated: true }) : set
  }
  if (!reader.take('\\')) return reader.next()
  if (reader.take('b')) return 8
  return readEscape(reader)
}

/** Gives the end of a range, or the character itself where none begins; a `-` before a set stands for itself. */
function readRangeEnd(reader: Reader, first: number, sets: CharSet[]): number {
  if (!reader.match(/-(?!\])/y)) return first
  const last = readMember(reader)
  if (typeof last !== 'number') {
    sets.push(last, charSet({ ranges: [[45, 45]] }))
    return first
  }
  if (last < first) throw new PatternError('it has a range whose end comes before its beginning')
  return last
}
