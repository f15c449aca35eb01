import { spend, type Work } from '../work.ts'
import { type Assertion, type CharSet, isWord, type LookAround, type Node, PatternError } from './syntax.ts'

/** One instruction: consumes a character of a set, asserts a position, looks around, branches (preferring `next`), or matches. */
export type Instruction =
  | { readonly op: 'set'; readonly set: number; readonly next: number }
  | { readonly op: 'assertion'; readonly assertion: Assertion; readonly next: number }
  | { readonly op: 'look'; readonly bit: number; readonly negative: boolean; readonly next: number }
  | { readonly op: 'split'; readonly next: number; readonly other: number }
  | { readonly op: 'match' }

/** A pattern as an automaton (Thompson, 1968). */
export interface PatternProgram {
  readonly instructions: readonly Instruction[]
  readonly start: number
  readonly sets: readonly CharSet[]
  readonly assertions: ReadonlySet<Assertion>
}

export type Direction = 'forward' | 'backward'

/** The largest size of a program, with repeats such as `a{1000}` expanded. */
export const MAX_INSTRUCTIONS = 20_000

/**
 * Compiles a pattern. Its lookarounds become tests of bits, in the order of `looks`.
 *
 * @throws {PatternError} for a pattern of too many steps, and for a lookaround that is not in `looks`
 */
export function compileProgram(node: Node, direction: Direction, looks: readonly LookAround[] = []): PatternProgram {
  const size = sizeOf(node)
  if (size > MAX_INSTRUCTIONS)
    throw new PatternError(
      `it has ${size} steps once its repeats are written out; at most ${MAX_INSTRUCTIONS} are allowed`,
    )
  const instructions: Instruction[] = [{ op: 'match' }]
  const sets = new Map<string, { readonly set: CharSet; readonly index: number }>()
  const assertions = new Set<Assertion>()
  const push = (instruction: Instruction) => instructions.push(instruction) - 1
  const start = emit(node, 0)
  return { instructions, start, sets: [...sets.values()].map(({ set }) => set), assertions }

  /** Adds the instructions of a node that continues at `next`. Returns its first one. */
  function emit(part: Node, next: number): number {
    switch (part.kind) {
      case 'set':
        return push({ op: 'set', set: indexOf(part.set), next })
      case 'assertion': {
        const assertion = direction === 'forward' ? part.assertion : (MIRRORED.get(part.assertion) ?? part.assertion)
        assertions.add(assertion)
        return push({ op: 'assertion', assertion, next })
      }
      case 'sequence': {
        const inOrder = direction === 'forward' ? part.parts.toReversed() : part.parts
        return inOrder.reduce((after, each) => emit(each, after), next)
      }
      case 'choice':
        return part.options
          .map((option) => emit(option, next))
          .reduceRight((other, first) => push({ op: 'split', next: first, other }))
      case 'repeat':
        return emitRepeat(part, next)
      case 'look': {
        const bit = looks.indexOf(part)
        if (bit === -1) throw new PatternError(`it looks ${part.direction}`)
        return push({ op: 'look', bit, negative: part.negative, next })
      }
    }
  }

  function emitRepeat({ body, min, max, lazy }: Extract<Node, { kind: 'repeat' }>, next: number): number {
    const either = (again: number, after: number): Instruction =>
      lazy ? { op: 'split', next: after, other: again } : { op: 'split', next: again, other: after }
    let at = next
    if (max === Infinity) {
      at = push({ op: 'match' })
      instructions[at] = either(emit(body, at), next)
    } else for (let i = min; i < max; i++) at = push(either(emit(body, at), next))
    for (let i = 0; i < min; i++) at = emit(body, at)
    return at
  }

  function indexOf(set: CharSet): number {
    let known = sets.get(set.key)
    if (!known) sets.set(set.key, (known = { set, index: sets.size }))
    return known.index
  }
}

const MIRRORED: ReadonlyMap<Assertion, Assertion> = new Map([
  ['text start', 'text end'],
  ['text end', 'text start'],
  ['line start', 'line end'],
  ['line end', 'line start'],
])

/** Returns the number of instructions for a node. */
export function sizeOf(node: Node): number {
  switch (node.kind) {
    case 'set':
    case 'assertion':
      return 1
    case 'look':
      return sizeOf(node.body)
    case 'sequence':
      return sum(node.parts)
    case 'choice':
      return sum(node.options) + node.options.length - 1
    case 'repeat': {
      const { body, min, max } = node
      const copies = max === Infinity ? min + 1 : max
      return (sizeOf(body) + 1) * Math.max(copies, 1)
    }
  }
}

function sum(nodes: readonly Node[]): number {
  return nodes.reduce((total, node) => total + sizeOf(node), 0)
}

/** Characters that a program treats the same. */
export interface CharClass {
  /** One character of the class. */
  readonly sample: number
  /** For each of the program's sets, 1 if the characters are in it. */
  readonly isIn: Uint8Array
  readonly isWord: boolean
  readonly isNewline: boolean
  /** The lookarounds that match before the character, as bits. */
  readonly looks: number
}

const ASCII = 128
const PAGE = 256
/** The most pages in memory. Beyond it, all are dropped and built again. */
const MAX_PAGES = 128
/** The most lookarounds of one pattern: each has a bit of a byte. */
export const MAX_LOOKS = 8
const LOOKS = 2 ** MAX_LOOKS
/** Steps for testing one set. */
const SET_STEPS = 4

/** Sorts characters into classes as they occur: a text has few different ones. */
export class Alphabet {
  /** By class number, from 1. 0 is a character that has not occurred. */
  readonly classes: (CharClass | undefined)[] = [undefined]
  /** The class numbers of ASCII. */
  readonly ascii: Uint16Array = new Uint16Array(ASCII)
  readonly #program: PatternProgram
  readonly #byKey = new Map<string, number>()
  readonly #marked = new Map<number, number>()
  readonly #pages = new Map<number, Uint16Array>()

  constructor(program: PatternProgram) {
    this.#program = program
  }

  /** Returns the number of a code point's class. */
  classOf(codePoint: number, work: Work): number {
    const table = codePoint < ASCII ? this.ascii : this.#page(codePoint, work)
    const at = codePoint < ASCII ? codePoint : codePoint % PAGE
    return (table[at] ||= this.#classify(codePoint, work))
  }

  #page(codePoint: number, work: Work): Uint16Array {
    const number = Math.floor(codePoint / PAGE)
    let page = this.#pages.get(number)
    if (!page) {
      spend(work, PAGE)
      if (this.#pages.size >= MAX_PAGES) this.#pages.clear()
      this.#pages.set(number, (page = new Uint16Array(PAGE)))
    }
    return page
  }

  #classify(codePoint: number, work: Work): number {
    const { sets, assertions } = this.#program
    spend(work, (sets.length + 1) * SET_STEPS)
    const isIn = Uint8Array.from(sets, (set) => (set.has(codePoint) ? 1 : 0))
    const word = assertions.size > 0 && isWord(codePoint)
    const isNewline = assertions.size > 0 && codePoint === 10
    const key = `${isIn.join('')}${word ? 'w' : ''}${isNewline ? 'n' : ''}`
    let known = this.#byKey.get(key)
    if (known === undefined) {
      known = this.classes.length
      this.#byKey.set(key, known)
      this.classes.push({ sample: codePoint, isIn, isWord: word, isNewline, looks: 0 })
    }
    return known
  }

  /** Returns the number of the class of characters before which these lookarounds match. */
  withLooks(number: number, looks: number): number {
    if (looks === 0) return number
    const key = number * LOOKS + looks
    let known = this.#marked.get(key)
    if (known === undefined) {
      known = this.classes.length
      this.#marked.set(key, known)
      this.classes.push({ ...(this.classes[number] as CharClass), looks })
    }
    return known
  }
}
