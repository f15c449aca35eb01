import { ApiFault } from './faults.ts'

/** Reads one parameter. Throws a sentence's end, such as `must be a whole number`. */
export type Parameter<Value> = (text: string) => Value

type Parameters = Readonly<Record<string, Parameter<unknown>>>
type Parsed<P extends Parameters> = { readonly [Name in keyof P]?: ReturnType<P[Name]> }

const MAX_TEXT_LENGTH = 256

/**
 * Reads a query string strictly: every parameter known, given once, and well formed.
 *
 * @throws {ApiFault} `query_invalid`, naming the parameter
 */
export function parseQuery<P extends Parameters>(query: URLSearchParams, parameters: P): Parsed<P> {
  const known = new Map(Object.entries(parameters))
  const values = new Map<string, unknown>()
  for (const [name, text] of query) {
    const parameter = known.get(name)
    if (!parameter) throw invalid(name, `is not known here; ${listed([...known.keys()])}`)
    if (values.has(name)) throw invalid(name, 'is given twice')
    values.set(name, read(name, text, parameter))
  }
  return Object.fromEntries(values) as Parsed<P>
}

/** @throws {ApiFault} `query_invalid` where a parameter that is needed is absent */
export function required<Value>(name: string, value: Value | undefined): Value {
  if (value === undefined) throw invalid(name, 'is needed')
  return value
}

/** Text of 1 to 256 characters. */
export const text: Parameter<string> = (value) => {
  if (value === '') throw new RangeError('must not be empty')
  if (value.length > MAX_TEXT_LENGTH) throw new RangeError(`has more than ${MAX_TEXT_LENGTH} characters`)
  return value
}

/** A whole number in decimal digits, from `min` to `max`. */
export function wholeNumber(min: number, max: number): Parameter<number> {
  return (value) => {
    const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    throw new RangeError(`must be a whole number from ${min} to ${max}`)
  }
}

/** A time: RFC 3339, or milliseconds since 1970. */
export const time: Parameter<number> = (value) => {
  const ms = /^\d{1,15}$/.test(value) ? Number(value) : TIME.test(value) ? Date.parse(value) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw new RangeError('must be a time such as 2026-11-21T09:00:00Z, or milliseconds since 1970')
}

const TIME = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** One of a list of words. */
export function oneOf<Word extends string>(words: readonly Word[]): Parameter<Word> {
  return (value) => {
    const word = words.find((known) => known === value)
    if (word === undefined) throw new RangeError(`must be one of ${words.join(', ')}`)
    return word
  }
}

function read(name: string, value: string, parameter: Parameter<unknown>): unknown {
  try {
    return parameter(value)
  } catch (error) {
    throw invalid(name, (error as RangeError).message)
  }
}

/** Gives the fault of a parameter; `problem` is a sentence's end. */
export function invalid(name: string, problem: string): ApiFault {
  return new ApiFault(
    'query_invalid',
    `The query parameter ${JSON.stringify(name.slice(0, MAX_TEXT_LENGTH))} ${problem}.`,
  )
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'there are none' : `known are ${names.join(', ')}`
}
