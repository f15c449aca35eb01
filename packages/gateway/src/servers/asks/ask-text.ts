import { isObject, type JsonObject } from '@toolgate/values/json'
import { clip } from '../transport/json-rpc.ts'

const MAX_TEXT = 200
const MAX_LEFT_OUT = 5

/**
 * Returns the audit text of a request, such as `elicitation/create: Who are you?`.
 *
 * `given` has the params as the server sent them, so that the text can name those which the client does not get.
 */
export function describeAsk(method: string, shown: JsonObject, given: JsonObject = shown): string {
  const { message, url, systemPrompt, messages } = shown
  const said = [message, url, systemPrompt, lastText(messages)]
    .filter((text): text is string => typeof text === 'string')
    .map((text) => clip(text, MAX_TEXT))
  const missing = leftOut(shown, given)
  const note = missing.length > 0 ? ` (left out: ${missing.join(', ')})` : ''
  return [clip(method, 100), ...said].join(': ') + note
}

/** Returns the text of the last message of a conversation. */
function lastText(messages: unknown): unknown {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined
  const content = isObject(last) ? last['content'] : undefined
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content]
  return blocks.filter(isObject).find(({ text }) => typeof text === 'string')?.['text']
}

/** Fields that every client treats like absent ones, and so need no mention. */
function isSilent(field: string, value: unknown): boolean {
  return value === null || field === '_meta' || (field === 'includeContext' && value === 'none')
}

function leftOut(shown: JsonObject, given: JsonObject): readonly string[] {
  const fields = Object.keys(given).filter((field) => !Object.hasOwn(shown, field) && !isSilent(field, given[field]))
  return fields.slice(0, MAX_LEFT_OUT).map((field) => clip(field, 50))
}
