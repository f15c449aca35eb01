import { ConfigError } from '@toolgate/core'
import { fieldsOf } from './fields.ts'

/** The user's texts, for `origin` in conditions. */
export type UserWords = string | readonly string[]

/** The facts about a run that a host knows before it begins. */
export interface GivenWords {
  readonly userWords: UserWords | undefined
  readonly earlierResults: readonly unknown[] | undefined
}

/** @throws {ConfigError} for words that are not texts, and for results that are not a list */
export function checkWords({ userWords = [], earlierResults = [] }: Partial<GivenWords>): void {
  const texts: unknown = typeof userWords === 'string' ? [userWords] : userWords
  if (!Array.isArray(texts) || !texts.every((text) => typeof text === 'string'))
    throw new ConfigError('guard.userWords', 'must be a text or a list of texts')
  if (!Array.isArray(earlierResults)) throw new ConfigError('guard.earlierResults', 'must be a list')
}

/**
 * Returns the texts of the messages with the role `user`, in the form of any of the frameworks: for `userWords`.
 *
 * Nothing calls this for you. Pass only messages that your user has written: summaries and documents come as `user`
 * messages, too. Only the text parts of a message count.
 * @example
 * guard(gate, caller, { userWords: userTextsOf(messages) })
 */
export function userTextsOf(messages: readonly unknown[]): readonly string[] {
  return messages.flatMap((message) => (isOfUser(message) ? partsOf(message).flatMap(textOf) : []))
}

/** Returns the results of tools in messages: for `earlierResults`. */
export function resultsOf(messages: readonly unknown[]): readonly unknown[] {
  return messages.flatMap((message) => {
    const { role, type } = fieldsOf(message)
    if (isResult(role) || isResult(typeOf(message)) || isResult(type)) return [contentOf(message)]
    return partsOf(message).filter(isResultPart)
  })
}

/** Returns the type of a message. LangChain's messages have methods where others have fields. */
function typeOf(message: unknown): unknown {
  const { getType } = fieldsOf(message)
  return typeof getType === 'function' ? (getType as () => unknown).call(message) : undefined
}

function isOfUser(message: unknown): boolean {
  const { role } = fieldsOf(message)
  return role === 'user' || typeOf(message) === 'human'
}

function contentOf(message: unknown): unknown {
  const { content, parts, output } = fieldsOf(message)
  return parts ?? content ?? output ?? message
}

function partsOf(message: unknown): readonly unknown[] {
  const { parts } = fieldsOf(contentOf(message))
  const content = Array.isArray(parts) ? parts : contentOf(message)
  return Array.isArray(content) ? content : [content]
}

const TEXT_TYPES: ReadonlySet<unknown> = new Set([undefined, 'text', 'input_text'])

function textOf(part: unknown): readonly string[] {
  if (typeof part === 'string') return [part]
  const { type, text } = fieldsOf(part)
  return typeof text === 'string' && TEXT_TYPES.has(type) ? [text] : []
}

const RESULT = /^tool$|^function$|result|_output$|response$/

function isResult(name: unknown): boolean {
  return typeof name === 'string' && RESULT.test(name)
}

function isResultPart(part: unknown): boolean {
  const { type, functionResponse, output, toolInvocation } = fieldsOf(part)
  return isResult(type) || [functionResponse, output, toolInvocation].some((found) => found !== undefined)
}
