import type { Caller } from '../caller.ts'
import { messageOf } from '../errors.ts'
import type { Tool } from '../tools/tool.ts'
import type { FunctionPolicy, PolicyAnswer } from './policy.ts'

/** What a function said of one tool; `failure` is why it counts as having denied with `policy_error`. */
export interface FunctionAnswer {
  readonly outcome: PolicyAnswer
  readonly message: string | undefined
  readonly failure: string | undefined
}

/**
 * Asks a function policy about a tool, for a caller.
 *
 * It is asked about tools that there are: anything null-ish is denied. A throw, a promise and any answer but
 * the four forms deny too: what cannot be understood is never a yes.
 */
export function askFunction(
  decide: FunctionPolicy['decide'],
  tool: Tool | null | undefined,
  caller: Caller,
): FunctionAnswer {
  if (tool === null || tool === undefined) return DENY
  try {
    return readAnswer(decide(tool, caller))
  } catch (error) {
    return failed(`it failed: ${messageOf(error).split('\n')[0]}`)
  }
}

const ALLOW: FunctionAnswer = { outcome: 'allow', message: undefined, failure: undefined }
const ASK: FunctionAnswer = { outcome: 'ask', message: undefined, failure: undefined }
const DENY: FunctionAnswer = { outcome: 'deny', message: undefined, failure: undefined }
const WORDS: ReadonlyMap<unknown, FunctionAnswer> = new Map([
  ['allow', ALLOW],
  ['ask', ASK],
  ['deny', DENY],
])
const KEYS: ReadonlySet<string> = new Set(['outcome', 'message'])

function readAnswer(answer: unknown): FunctionAnswer {
  const word = WORDS.get(answer)
  if (word) return word
  if (typeof answer !== 'object' || answer === null) return failed('it answered none of allow, ask and deny')
  if (isThenable(answer)) return failed('it answered with a promise, and a policy must answer at once')
  const { outcome, message } = Object.fromEntries(Object.entries(answer))
  const plain = WORDS.get(outcome)
  if (!plain || Object.keys(answer).some((key) => !KEYS.has(key)))
    return failed('it answered neither with allow, ask or deny nor with { outcome, message }')
  if (message === undefined) return plain
  if (typeof message !== 'string' || message === '') return failed('its message is not a text')
  return { outcome: plain.outcome, message, failure: undefined }
}

function failed(failure: string): FunctionAnswer {
  return { outcome: 'deny', message: undefined, failure }
}

/** That it may reject later must not end the process. */
function isThenable(answer: object): boolean {
  if (answer instanceof Promise) answer.catch(() => {})
  return typeof (answer as { then?: unknown }).then === 'function'
}
