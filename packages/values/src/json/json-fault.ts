import { describeExcess, type JsonExcess } from './json-measure.ts'

const PROBLEMS = {
  'not-utf8': 'is not UTF-8',
  'not-json': 'is not JSON',
  'key-twice': 'holds a key that occurs twice in one object',
  number: 'holds a number that is too large for JSON readers',
} as const

export type JsonFaultKind = keyof typeof PROBLEMS | 'bound'

/**
 * Thrown when a text from outside is rejected.
 *
 * Each caller maps it to its own error, whose message is `The body ${fault.problem}.` or similar.
 */
export class JsonFault extends Error {
  override readonly name = 'JsonFault'
  readonly kind: JsonFaultKind
  /** The rest of a sentence about the text: `holds more than 50000 values`. Contains nothing from the text. */
  readonly problem: string
  /** The exceeded bound, for the kind `bound`. */
  readonly excess: JsonExcess | undefined

  constructor(reason: keyof typeof PROBLEMS | JsonExcess) {
    const excess = typeof reason === 'string' ? undefined : reason
    const problem = typeof reason === 'string' ? PROBLEMS[reason] : describeExcess(reason)
    super(`The text ${problem}.`)
    this.kind = typeof reason === 'string' ? reason : 'bound'
    this.problem = problem
    this.excess = excess
  }
}
