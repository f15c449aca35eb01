import { spend, type Work } from '../work.ts'
import { isWord } from './char-set.ts'
import type { Program } from './program.ts'

/** Characters that a program cannot tell apart. */
export interface CharClass {
  /** One of them. */
  readonly sample: number
  /** By index of the program's sets: whether it is in them. */
  readonly isIn: Uint8Array
  readonly isWord: boolean
  readonly isNewline: boolean
}

const ASCII = 128
const PAGE = 256
/** Pages that are kept; with more, they are made again. */
const MAX_PAGES = 128
/** What a look at one set costs, in steps. */
const SET_STEPS = 4

/** Sorts characters into classes as they are met: a text has few different ones. */
export class Alphabet {
  /** By class number, which begins at 1: 0 is a character that was not met. */
  readonly classes: (CharClass | undefined)[] = [undefined]
  /** The class numbers of ASCII. */
  readonly ascii: Uint16Array = new Uint16Array(ASCII)
  readonly #program: Program
  readonly #byKey = new Map<string, number>()
  readonly #pages = new Map<number, Uint16Array>()

  constructor(program: Program) {
    this.#program = program
  }

  /** Gives the number of a code point's class. */
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
      this.classes.push({ sample: codePoint, isIn, isWord: word, isNewline })
    }
    return known
  }
}
