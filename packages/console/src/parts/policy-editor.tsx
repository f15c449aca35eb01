import { useMutation } from '@tanstack/react-query'
import { type FormEvent, type ReactElement, useId, useMemo, useRef, useState } from 'react'
import { type ApiError, postJson } from '../api.ts'
import { offsetOf, type PolicyProblem, toProblems } from '../policy.ts'
import { dropDraft, keepDraft, type PolicyDraft, readDraft } from '../policy-draft.ts'
import type { CompareBody, PolicyBody, WhatIfBody } from '../wire.ts'
import { announce } from './announcer.tsx'
import { GrantsNoMore } from './grants-no-more.tsx'
import { PolicyProblems } from './policy-problems.tsx'
import { Reload } from './reload.tsx'
import { WhatIfResult } from './what-if.tsx'

/** The longest wait, in milliseconds. The gateway reads records for up to a minute. */
const WHAT_IF_TIMEOUT_MS = 90_000
const DAY_MS = 86_400_000
const PERIODS = [
  ['the last day', 1],
  ['the last 7 days', 7],
  ['the last 30 days', 30],
] as const

interface PolicyEditorProps {
  readonly body: PolicyBody
  /** The user who owns the draft. */
  readonly user: string
  readonly close: () => void
}

/** Edits a copy of the policy, and shows its effect and how to put it into force. It never writes the file. */
export function PolicyEditor({ body, user, close }: PolicyEditorProps): ReactElement {
  const id = useId()
  const written = useMemo(() => (body.text ?? '').replaceAll('\r', ''), [body.text])
  const { text, from, change } = useDraft(user, written)
  const field = useRef<HTMLTextAreaElement>(null)
  const first = body.line ?? 1
  const preview = usePreview()
  const { asked, whatIf, compare } = preview
  const problems = whatIf.error && asked === text ? toProblems(whatIf.error.message) : []

  function goTo({ line = first, column = 1 }: PolicyProblem): void {
    const at = offsetOf(text, line - first + 1, column)
    field.current?.focus()
    field.current?.setSelectionRange(at, at)
  }
  return (
    <form className="stack loose" onSubmit={(event) => preview.ask(event, text)}>
      <Lines id={id} text={text} first={first} change={change} field={field} isWrong={problems.length > 0} />
      {from !== written && text !== written && (
        <p className="problem">The policy in force has changed since this draft began. Compare it before you go on.</p>
      )}
      <PolicyProblems id={`${id}-problems`} problems={problems} goTo={goTo} />
      <Buttons preview={preview} text={text} isChanged={text !== written} close={close} />
      <div role="status">
        {whatIf.data && asked !== text && <p className="dim">The text has changed since this was asked.</p>}
      </div>
      {whatIf.data && <GrantsNoMore body={compare.data} problem={compare.error?.message} />}
      {whatIf.data && <WhatIfResult found={whatIf.data} />}
      <Reload body={body} />
    </form>
  )
}

/** Returns the text of the editor: this person's draft, or the text of the file. */
function useDraft(user: string, written: string) {
  // An unchanged text is not a draft: it follows the policy in force.
  const [draft, setDraft] = useState(() => {
    const kept = readDraft(user)
    return kept?.text === written ? undefined : kept
  })
  const { text, from }: PolicyDraft = draft ?? { text: written, from: written }
  return {
    text,
    from,
    change(changed: string): void {
      setDraft(changed === from ? undefined : { text: changed, from })
      keepDraft(user, { text: changed, from })
    },
  }
}

type Preview = ReturnType<typeof usePreview>

/** Fetches the effect of a text: on recorded calls, and then on all calls. */
function usePreview() {
  const [days, setDays] = useState(7)
  // This runs after the what-if, because a gateway answers one of these questions at a time.
  const compare = useMutation<CompareBody, ApiError, string>({
    mutationFn: (policy) => postJson('/api/compare', { policy }, { timeoutMs: WHAT_IF_TIMEOUT_MS }),
    onSuccess: ({ grantsNoMore }) => announce(`Grants no more than today: ${grantsNoMore}`),
  })
  const whatIf = useMutation<WhatIfBody, ApiError, string>({
    mutationFn: (policy) =>
      postJson('/api/what-if', { policy, since: Date.now() - days * DAY_MS }, { timeoutMs: WHAT_IF_TIMEOUT_MS }),
    onSuccess: (_, policy) => {
      announce('The answer is below the text')
      compare.mutate(policy)
    },
  })
  const isPending = whatIf.isPending || compare.isPending
  return {
    days,
    setDays,
    asked: whatIf.variables,
    whatIf,
    compare,
    isPending,
    ask(event: FormEvent, text: string): void {
      event.preventDefault()
      if (!isPending) whatIf.mutate(text)
    },
  }
}

interface ButtonsProps extends Pick<PolicyEditorProps, 'close'> {
  readonly preview: Preview
  readonly text: string
  readonly isChanged: boolean
}

function Buttons({ preview, text, isChanged, close }: ButtonsProps): ReactElement {
  const { days, setDays, whatIf, compare, isPending } = preview
  const discard = (): void => {
    dropDraft()
    close()
  }
  return (
    <div className="row actions">
      <label>
        <span className="label">Over the calls of</span>{' '}
        <select value={days} onChange={(event) => setDays(Number(event.target.value))}>
          {PERIODS.map(([words, n]) => (
            <option key={n} value={n}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" className="main" aria-disabled={isPending}>
        {whatIf.isPending ? 'Replaying…' : compare.isPending ? 'Comparing…' : 'What would change'}
      </button>
      <button type="button" onClick={() => download(text)}>
        Download
      </button>
      {isChanged && (
        <button type="button" className="quiet" onClick={discard}>
          Discard
        </button>
      )}
      <button type="button" className="quiet" onClick={close}>
        {isChanged ? 'Keep the draft and close' : 'Close'}
      </button>
    </div>
  )
}

interface LinesProps {
  readonly id: string
  readonly text: string
  readonly first: number
  readonly change: (text: string) => void
  readonly field: React.RefObject<HTMLTextAreaElement | null>
  readonly isWrong: boolean
}

/** Shows a text with its line numbers in the file. */
function Lines({ id, text, first, change, field, isWrong }: LinesProps): ReactElement {
  const numbers = useRef<HTMLPreElement>(null)
  const lineCount = text.split('\n').length
  const counted = useMemo(() => Array.from({ length: lineCount }, (_, i) => first + i).join('\n'), [lineCount, first])
  return (
    <div className="field">
      <label htmlFor={id}>The section policy, from line {first} of the file</label>
      <div className="numbered">
        <pre ref={numbers} aria-hidden="true">
          {counted}
        </pre>
        <textarea
          ref={field}
          id={id}
          className="code"
          rows={Math.min(Math.max(lineCount, 8), 24)}
          wrap="off"
          spellCheck={false}
          autoComplete="off"
          autoFocus
          value={text}
          aria-invalid={isWrong}
          aria-describedby={`${id}-problems`}
          onChange={(event) => change(event.target.value)}
          onScroll={({ currentTarget: { scrollTop } }) => {
            if (numbers.current) numbers.current.scrollTop = scrollTop
          }}
        />
      </div>
    </div>
  )
}

function download(text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }))
  const link = document.createElement('a')
  link.href = url
  link.download = 'policy.yaml'
  link.click()
  // By then the browser has begun to read the URL.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
