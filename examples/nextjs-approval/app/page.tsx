'use client'
import { useChat } from '@ai-sdk/react'
import { isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai'

export default function Page() {
  const { messages, status, error, sendMessage, addToolApprovalResponse } = useChat({
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const answer = (id: string, approved: boolean) => () => addToolApprovalResponse({ id, approved })
  return (
    <main data-status={status}>
      {messages.map(({ id, role, parts }) => (
        <article key={id} data-role={role}>
          {parts.map((part, index) => (
            <Part key={index} part={part} answer={answer} />
          ))}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form
        action={(form) => {
          const question = form.get('question')
          if (typeof question === 'string') void sendMessage({ text: question })
        }}
      >
        <input name="question" aria-label="Question" />
        <button>Send</button>
      </form>
    </main>
  )
}

interface PartProps {
  readonly part: UIMessage['parts'][number]
  readonly answer: (id: string, approved: boolean) => () => void
}

/** A text, or a call: with two buttons while it waits for a person. */
function Part({ part, answer }: PartProps) {
  if (part.type === 'text') return <p>{part.text}</p>
  if (!isToolUIPart(part)) return null
  const name = part.type.replace(/^tool-/, '')
  if (part.state !== 'approval-requested')
    return (
      <pre data-state={part.state}>
        {name} {JSON.stringify(part.input)}{' '}
        {part.state === 'output-available' ? JSON.stringify(part.output) : part.errorText}
      </pre>
    )
  return (
    <fieldset>
      <legend>
        Run {name} with {JSON.stringify(part.input)}?
      </legend>
      <button onClick={answer(part.approval.id, true)}>Approve</button>
      <button onClick={answer(part.approval.id, false)}>Reject</button>
    </fieldset>
  )
}
