import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, type RefObject, type SubmitEvent, useId, useState } from 'react'
import { type ApiError, postJson } from '../api.ts'
import { emptyReach, TARGET_FIELDS, type TargetField, toHaltBody } from '../halts.ts'
import type { HaltBody, HaltRow } from '../wire.ts'
import { Exact } from './exact.tsx'

const LABELS: Readonly<Record<TargetField, { readonly label: string; readonly example: string }>> = {
  user: { label: 'User', example: 'vera' },
  tool: { label: 'Tools', example: 'files:*, group:web' },
  session: { label: 'Session', example: '' },
  tenant: { label: 'Tenant', example: '' },
}

/** Asks what to halt and why. A native dialog: it keeps the focus, closes on Escape, and gives the focus back. */
export function HaltDialog({ dialog }: { dialog: RefObject<HTMLDialogElement | null> }): ReactElement {
  const id = useId()
  const [opened, setOpened] = useState(0)
  return (
    <dialog
      ref={dialog}
      className="halt-dialog"
      aria-labelledby={`${id}-title`}
      aria-describedby={`${id}-about`}
      onClose={() => setOpened(opened + 1)}
    >
      <h2 id={`${id}-title`}>Halt</h2>
      <p id={`${id}-about`} className="dim">
        Stops what all fields name together, at once: calls that come, that wait, and that run.
      </p>
      {/* New at each opening, so nothing of the last time is left in it. */}
      <HaltForm key={opened} id={id} close={() => dialog.current?.close()} />
    </dialog>
  )
}

function HaltForm({ id, close }: { id: string; close: () => void }): ReactElement {
  const client = useQueryClient()
  const [isAll, setAll] = useState(false)
  const [problem, setProblem] = useState<string>()
  const [isForced, setForced] = useState(false)
  const halt = useMutation<HaltRow, ApiError, HaltBody>({
    mutationFn: (body) => postJson('/api/halts', body),
    onSuccess: (row) => emptyReach(row) === undefined && close(),
    onSettled: () => client.invalidateQueries(),
  })
  const empty = halt.data && emptyReach(halt.data)
  const told = problem ?? halt.error?.message

  function submit(event: SubmitEvent<HTMLFormElement>): void {
    event.preventDefault()
    const fields = [...new FormData(event.currentTarget)].flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value] as const] : [],
    )
    const asked = toHaltBody(new Map(fields))
    setProblem('problem' in asked ? asked.problem : undefined)
    if ('body' in asked) halt.mutate(isForced ? { ...asked.body, force: true } : asked.body)
  }
  return (
    <form onSubmit={submit} noValidate>
      <div className="halt-fields">
        {TARGET_FIELDS.map((field) => (
          <div key={field} className="field">
            <label htmlFor={`${id}-${field}`}>{LABELS[field].label}</label>
            <input
              id={`${id}-${field}`}
              name={field}
              placeholder={LABELS[field].example}
              maxLength={300}
              spellCheck={false}
              autoComplete="off"
              disabled={isAll}
            />
          </div>
        ))}
      </div>
      <label className="halt-all">
        <input type="checkbox" name="all" checked={isAll} onChange={(event) => setAll(event.target.checked)} />{' '}
        Everything that I answer for
      </label>
      <div className="field">
        <label htmlFor={`${id}-reason`}>Reason; the model is told it</label>
        <input id={`${id}-reason`} name="reason" maxLength={500} required />
      </div>
      {told !== undefined && (
        <p className="problem" role="alert">
          <Exact text={told} />
        </p>
      )}
      {(isForced || halt.error?.code === 'halt_empty') && (
        <label className="halt-all">
          <input type="checkbox" checked={isForced} onChange={(event) => setForced(event.target.checked)} /> Halt it for
          what comes later, although nothing has this name now
        </label>
      )}
      {empty !== undefined && (
        <p className="problem" role="alert">
          <Exact text={`It is halted, and stops nothing now: ${empty}`} />
        </p>
      )}
      <div className="halt-buttons">
        <button type="button" onClick={close}>
          {empty === undefined ? 'Cancel' : 'Close'}
        </button>
        <button type="submit" className="reject" disabled={halt.isPending}>
          Halt now
        </button>
      </div>
    </form>
  )
}
