import { RpcFault } from '../model/protocol.ts'

/** The media types in which a client takes an answer: JSON or an event stream, only JSON, or only an event stream. */
export type AnswerForm = 'any' | 'json' | 'stream'

const JSON_TYPE = 'application/json'
const STREAM_TYPE = 'text/event-stream'

/** Nearly every client sends one of these, so they are not parsed. */
const USUAL: ReadonlySet<string> = new Set(
  [
    [JSON_TYPE, STREAM_TYPE],
    [STREAM_TYPE, JSON_TYPE],
  ].flatMap((types) => [types.join(', '), types.join(',')]),
)

/**
 * Returns the form in which the client of an `Accept` header takes an answer (RFC 9110 §12.5.1). Media types are
 * case-insensitive, and a quality of 0 excludes one. Without the header, a client takes any form.
 *
 * `undefined`: the client takes neither JSON nor an event stream.
 *
 * @example
 * toAnswerForm('text/event-stream;q=0, *' + '/*')  // 'json'
 */
export function toAnswerForm(accept: string | undefined): AnswerForm | undefined {
  if (accept === undefined || USUAL.has(accept)) return 'any'
  const ranges = accept.split(',').flatMap(toRange)
  // An empty header names no preference.
  if (ranges.length === 0) return 'any'
  const [json, stream] = [isAccepted(ranges, JSON_TYPE), isAccepted(ranges, STREAM_TYPE)]
  if (json && stream) return 'any'
  return json ? 'json' : stream ? 'stream' : undefined
}

/** @throws {RpcFault} `not_acceptable` */
export function checkAccept(accept: string | undefined): AnswerForm {
  const form = toAnswerForm(accept)
  if (form === undefined)
    throw new RpcFault('not_acceptable', `The Accept header must allow ${JSON_TYPE} or ${STREAM_TYPE}.`)
  return form
}

interface MediaRange {
  readonly type: string
  /** Whether its quality is 0. */
  readonly isExcluded: boolean
}

/** A quality that is no number does not exclude anything. */
const ZERO = /^q\s*=\s*0(?:\.0*)?$/

function toRange(text: string): readonly MediaRange[] {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  return type === '' ? [] : [{ type, isExcluded: parameters.some((parameter) => ZERO.test(parameter)) }]
}

/** The most specific range decides. `*` alone is an old spelling of the range for everything. */
function isAccepted(ranges: readonly MediaRange[], type: string): boolean {
  for (const names of [[type], [`${type.slice(0, type.indexOf('/'))}/*`], ['*/*', '*']]) {
    const found = ranges.filter((range) => names.includes(range.type))
    if (found.length > 0) return found.some(({ isExcluded }) => !isExcluded)
  }
  return false
}
