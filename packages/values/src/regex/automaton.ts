import { spend, type Work } from '../work.ts'
import { Alphabet, type CharClass, type Direction, type Instruction, type PatternProgram } from './program.ts'
import { type Assertion, isWord } from './syntax.ts'

/** The kind of character before a position, for assertions. */
type Before = 'start' | 'newline' | 'word' | 'other'

/** A state of the automaton. */
interface AutomatonState {
  /** The instructions to continue at, preferred ones first. */
  readonly kernel: Uint32Array
  readonly before: Before
  /** Whether a match ended before the last character. */
  readonly ended: boolean
  /** Whether a match may still begin later. */
  readonly searching: boolean
  /** The next states, by the class of the next character. */
  readonly next: (AutomatonState | undefined)[]
  /** Whether a match ends here at the end of the text. */
  endsHere: boolean | undefined
}

interface AutomatonOptions {
  /** Whether a match must begin at the start of the text. */
  readonly anchored: boolean
  /** `any`: only report whether there is a match. */
  readonly wanted: 'any' | 'preferred' | 'longest'
}

/** The cost in steps of each instruction that is visited to build a state, and of each state. */
const INSTRUCTION_STEPS = 12
const STATE_STEPS = 100
/** Steps for a run, beside those for its characters. */
const RUN_STEPS = 10
/** How many instructions the states of all automata keep together. Beyond that, all states are dropped and made again as needed. */
const MAX_KEPT = 500_000
let kept = 0
const keepers = new Set<Automaton>()

function keep(keeper: Automaton, instructions: number): void {
  kept += instructions + STATE_STEPS
  if (kept > MAX_KEPT) {
    for (const each of keepers) each.forget()
    keepers.clear()
    kept = instructions + STATE_STEPS
  }
  keepers.add(keeper)
}

/**
 * Runs a program over texts. Makes the states of its deterministic automaton as they occur, as RE2 does.
 *
 * A character costs one step, and a new state some for each instruction, so the work is counted exactly.
 */
export class Automaton {
  readonly #program: PatternProgram
  readonly #options: AutomatonOptions
  readonly #alphabet: Alphabet
  /** States by hash. */
  readonly #states = new Map<number, AutomatonState[]>()
  readonly #startsAnywhere: boolean
  readonly #seen: Uint32Array
  readonly #starts = new Map<Before, AutomatonState>()
  #round = 0

  constructor(program: PatternProgram, options: AutomatonOptions) {
    this.#program = program
    this.#options = options
    this.#alphabet = new Alphabet(program)
    this.#seen = new Uint32Array(program.instructions.length)
    this.#startsAnywhere = !options.anchored && canBeginLater(program)
  }

  /** Runs to the right from an offset. Returns the end of a match, or -1. */
  findEnd(text: string, from: number, work: Work): number {
    const { wanted } = this.#options
    const { ascii } = this.#alphabet
    let state = this.#startState(beforeAt(text, from), work)
    let end = -1
    let at = from
    // The run ends where the steps would run out, so that a long text does not exceed them.
    const last = Math.min(text.length, from + Math.max(work.left, 0) + 1)
    for (; at < last; at++) {
      const code = text.charCodeAt(at)
      let next = code < 128 ? state.next[ascii[code] as number] : undefined
      if (next === undefined) {
        const isPair = isHigh(code) && isLow(text.charCodeAt(at + 1))
        next = this.#step(state, this.#alphabet.classOf(isPair ? (text.codePointAt(at) as number) : code, work), work)
        if (next.ended) end = at
        if (isPair) at++
      } else if (next.ended) end = at
      state = next
      if (state.ended && wanted === 'any') break
      if (state.kernel.length === 0) break
    }
    spend(work, Math.min(at, text.length) - from + RUN_STEPS)
    return at >= text.length && this.#endsAt(state, work) ? text.length : end
  }

  /** Runs to the left from an offset. Returns the start of a match, or -1. */
  findStart(text: string, from: number, downTo: number, work: Work): number {
    let state = this.#startState(beforeAt(text, from, 'backward'), work)
    let start = -1
    let at = from
    const last = Math.max(downTo, from - Math.max(work.left, 0) - 1)
    while (at > last) {
      let code = text.charCodeAt(at - 1)
      const step = isLow(code) && at - 2 >= downTo && isHigh(text.charCodeAt(at - 2)) ? 2 : 1
      if (step === 2) code = text.codePointAt(at - 2) as number
      state = this.#step(state, this.#alphabet.classOf(code, work), work)
      if (state.ended) start = at
      if (state.kernel.length === 0) break
      at -= step
    }
    spend(work, from - at + RUN_STEPS)
    if (at > downTo || state.kernel.length === 0) return start
    // The character at `downTo` decides assertions, because the text may continue beyond it.
    if (downTo === 0) return this.#endsAt(state, work) ? 0 : start
    const beyond = text.charCodeAt(downTo - 1)
    return this.#step(state, this.#alphabet.classOf(beyond, work), work).ended ? downTo : start
  }

  /**
   * Runs over a whole text, with the matching lookarounds at each position as bits of `marks`. Calls `onMatch` with each
   * position where a match ends (or, to the left, begins) until it returns true.
   */
  runMarked(
    text: string,
    { direction, marks, onMatch }: { direction: Direction; marks: Uint8Array; onMatch: (at: number) => boolean },
    work: Work,
  ): void {
    const [first, last, way] = direction === 'forward' ? [0, text.length, 1] : [text.length, 0, -1]
    spend(work, text.length + RUN_STEPS)
    let state = this.#startState('start', work)
    for (let at = first; at !== last;) {
      const start = direction === 'forward' ? at : pairBefore(text, at) ? at - 2 : at - 1
      const code = text.codePointAt(start) as number
      const charClass = this.#alphabet.withLooks(this.#alphabet.classOf(code, work), marks[at] as number)
      state = this.#step(state, charClass, work)
      if (state.ended && onMatch(at)) return
      if (state.kernel.length === 0) return
      at += code > 0xffff ? 2 * way : way
    }
    if (this.#reach(state, undefined, work, marks[last]).ended) onMatch(last)
  }

  /** Drops the states of earlier texts. A run in progress continues. */
  forget(): void {
    for (const bucket of this.#states.values()) for (const state of bucket) state.next.length = 0
    this.#states.clear()
    this.#starts.clear()
  }

  #startState(before: Before, work: Work): AutomatonState {
    let state = this.#starts.get(before)
    if (!state) this.#starts.set(before, (state = this.#stateOf([this.#program.start], before, false, true, work)))
    return state
  }

  #step(state: AutomatonState, charClass: number, work: Work): AutomatonState {
    return (state.next[charClass] ??= this.#makeNext(state, this.#alphabet.classes[charClass] as CharClass, work))
  }

  #makeNext(state: AutomatonState, next: CharClass, work: Work): AutomatonState {
    const { sets, ended } = this.#reach(state, next, work)
    const isFirstKept = this.#options.wanted === 'preferred'
    const kernel: number[] = []
    const round = ++this.#round
    for (const at of sets) {
      const instruction = this.#program.instructions[at] as Extract<Instruction, { op: 'set' }>
      if (next.isIn[instruction.set] === 1 && this.#seen[instruction.next] !== round) {
        this.#seen[instruction.next] = round
        kernel.push(instruction.next)
      }
    }
    const searching = state.searching && !(ended && isFirstKept)
    if (searching && this.#startsAnywhere && this.#seen[this.#program.start] !== round) kernel.push(this.#program.start)
    return this.#stateOf(kernel, this.#beforeOf(next), ended, searching, work)
  }

  #endsAt(state: AutomatonState, work: Work): boolean {
    return (state.endsHere ??= this.#reach(state, undefined, work).ended)
  }

  /** Follows instructions that consume nothing. Returns those that consume a character, and whether a match is reached. */
  #reach(
    state: AutomatonState,
    next: CharClass | undefined,
    work: Work,
    looks = next?.looks ?? 0,
  ): { readonly sets: readonly number[]; readonly ended: boolean } {
    const { instructions } = this.#program
    const round = ++this.#round
    const sets: number[] = []
    const stack = Array.from(state.kernel).toReversed()
    let looked = 0
    let ended = false
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      if (this.#seen[at] === round) continue
      this.#seen[at] = round
      looked++
      const instruction = instructions[at] as Instruction
      if (instruction.op === 'set') sets.push(at)
      else if (instruction.op === 'split') stack.push(instruction.other, instruction.next)
      else if (instruction.op === 'assertion') {
        if (holds(instruction.assertion, state.before, next)) stack.push(instruction.next)
      } else if (instruction.op === 'look') {
        if (((looks >> instruction.bit) & 1) !== Number(instruction.negative)) stack.push(instruction.next)
      } else {
        ended = true
        // Instructions that are less preferred than a match no longer matter.
        if (this.#options.wanted !== 'longest') break
      }
    }
    spend(work, looked * INSTRUCTION_STEPS)
    return { sets, ended }
  }

  #stateOf(
    instructions: readonly number[],
    before: Before,
    ended: boolean,
    searching: boolean,
    work: Work,
  ): AutomatonState {
    const kernel = Uint32Array.from(instructions)
    if (this.#options.wanted !== 'preferred') kernel.sort()
    spend(work, kernel.length)
    const hash = hashOf(kernel)
    const bucket = this.#states.get(hash) ?? []
    const known = bucket.find(
      (state) =>
        state.before === before &&
        state.ended === ended &&
        state.searching === searching &&
        isSame(state.kernel, kernel),
    )
    if (known) return known
    spend(work, STATE_STEPS)
    keep(this, kernel.length)
    const state: AutomatonState = { kernel, before, ended, searching, next: [], endsHere: undefined }
    bucket.push(state)
    this.#states.set(hash, bucket)
    return state
  }

  #beforeOf({ isWord: word, isNewline }: CharClass): Before {
    return isNewline ? 'newline' : word ? 'word' : 'other'
  }
}

function hashOf(kernel: Uint32Array): number {
  let hash = 0
  for (const instruction of kernel) hash = (Math.imul(hash, 31) + instruction) | 0
  return hash
}

function isSame(a: Uint32Array, b: Uint32Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}

function beforeAt(text: string, at: number, direction: 'forward' | 'backward' = 'forward'): Before {
  if (direction === 'forward' ? at === 0 : at === text.length) return 'start'
  const code = text.charCodeAt(direction === 'forward' ? at - 1 : at)
  return code === 10 ? 'newline' : isWord(code) ? 'word' : 'other'
}

function holds(assertion: Assertion, before: Before, next: CharClass | undefined): boolean {
  switch (assertion) {
    case 'text start':
      return before === 'start'
    case 'text end':
      return next === undefined
    case 'line start':
      return before === 'start' || before === 'newline'
    case 'line end':
      return next === undefined || next.isNewline
    case 'word boundary':
      return (before === 'word') !== (next?.isWord ?? false)
    case 'no word boundary':
      return (before === 'word') === (next?.isWord ?? false)
  }
}

/** Returns whether a match can begin after the start of the text. */
function canBeginLater({ instructions, start }: PatternProgram): boolean {
  const seen = new Set<number>()
  const stack = [start]
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    if (seen.has(at)) continue
    seen.add(at)
    const instruction = instructions[at] as Instruction
    if (instruction.op === 'set' || instruction.op === 'match') return true
    if (instruction.op === 'split') stack.push(instruction.next, instruction.other)
    else if (instruction.op === 'look' || instruction.assertion !== 'text start') stack.push(instruction.next)
  }
  return false
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00
}

/** Returns whether a surrogate pair ends at a position. */
function pairBefore(text: string, at: number): boolean {
  return at >= 2 && isLow(text.charCodeAt(at - 1)) && isHigh(text.charCodeAt(at - 2))
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000
}
