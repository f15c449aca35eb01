import { isObject, type JsonObject } from '@toolgate/values/json'

/** The client's answers, by the key of each request. */
export type ClientResponses = Readonly<Record<string, JsonObject>>

/** The answers of a client are not of the form that MCP 2026-07-28 defines. */
export class ResponsesInvalid extends Error {
  override readonly name = 'ResponsesInvalid'
}

const MAX_KEY = 100

/**
 * Returns the answers in `params.inputResponses`. None if the field is absent.
 *
 * @throws {ResponsesInvalid} that names the answer which is not an object
 */
export function readResponses(given: unknown): ClientResponses {
  if (given === undefined || given === null) return {}
  if (!isObject(given)) throw new ResponsesInvalid('params.inputResponses must be an object.')
  const bad = Object.keys(given).find((key) => !isObject(given[key]))
  if (bad === undefined) return given as ClientResponses
  throw new ResponsesInvalid(`params.inputResponses[${JSON.stringify(bad.slice(0, MAX_KEY))}] must be an object.`)
}

/** The field without which a server cannot use an answer, by the method of the request. */
const ANSWERS: ReadonlyMap<string, (answer: JsonObject) => boolean> = new Map([
  ['elicitation/create', ({ action }) => typeof action === 'string'],
  ['sampling/createMessage', ({ content }) => isObject(content) || Array.isArray(content)],
  ['roots/list', ({ roots }) => Array.isArray(roots)],
])

/** Whether a value answers a request of this method. */
export function isAnswerTo(method: string, answer: unknown): answer is JsonObject {
  return isObject(answer) && ANSWERS.get(method)?.(answer) !== false
}
