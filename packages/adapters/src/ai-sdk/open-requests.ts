import type { ModelMessage } from 'ai'
import { fieldsOf } from '../shared/fields.ts'
import { USER_WROTE } from '../shared/unanswered.ts'

/**
 * Returns messages in which each approval request has an answer, for a user who wrote instead of approving. The SDK
 * rejects messages with an unanswered call. The call did not run, and its approval still waits at the gate.
 *
 * Returns the same list if nothing is missing, or if the user has not written since.
 */
export function answerOpenRequests(messages: readonly ModelMessage[]): readonly ModelMessage[] {
  const lastOfUser = messages.findLastIndex(({ role }) => role === 'user')
  const answered = new Set(messages.flatMap((message) => (message.role === 'tool' ? partsOf(message).map(idOf) : [])))
  const open = new Set(
    messages
      .slice(0, Math.max(0, lastOfUser))
      .flatMap(partsOf)
      .filter(
        ({ type, approvalId, toolCallId }) =>
          type === 'tool-approval-request' && !answered.has(approvalId) && !answered.has(toolCallId),
      )
      .map(({ toolCallId }) => toolCallId),
  )
  if (open.size === 0) return messages
  return messages.flatMap((message): ModelMessage[] => {
    const content =
      message.role === 'assistant'
        ? partsOf(message)
            .filter((part) => isCallOf(part, open))
            .map(toDenied)
        : []
    return content.length === 0 ? [message] : [message, { role: 'tool', content } as ModelMessage]
  })
}

type Part = ReturnType<typeof fieldsOf>

function partsOf({ content }: ModelMessage): readonly Part[] {
  return Array.isArray(content) ? content.map(fieldsOf) : []
}

/** Returns the id of the request or the call that a part of a tool message answers. */
function idOf({ approvalId, toolCallId }: Part): unknown {
  return approvalId ?? toolCallId
}

function isCallOf({ type, toolCallId }: Part, open: ReadonlySet<unknown>): boolean {
  return type === 'tool-call' && open.has(toolCallId)
}

function toDenied({ toolCallId, toolName }: Part): object {
  return { type: 'tool-result', toolCallId, toolName, output: { type: 'execution-denied', reason: USER_WROTE } }
}
