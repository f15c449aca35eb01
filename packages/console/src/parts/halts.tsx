import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useRef, type RefObject, type SubmitEvent, useId, useState } from 'react'
import { type ApiError, deleteJson, postJson } from '../api.ts'
import { count, toSentence } from '../format.ts'
import {
  emptyReach,
  wordsOfForce,
  wordsOfReach,
  wordsOfTarget,
  TARGET_FIELDS,
  type TargetField,
  toHaltBody,
} from '../halts.ts'
import { useApi } from '../hooks.ts'
import type { HaltRow, HaltsBody, HaltBody } from '../wire.ts'
import { Exact } from './exact.tsx'
import { Ago } from './when.tsx'

const REFRESH_MS = 3000

/** The halts, on every page, with the button to add one. Absent without halts for a person who may not add one. */
export function Halts(): ReactElement | null {
  const halts = useApi<HaltsBody>({ key: ['halts'], path: '/api/halts', everyMs: REFRESH_MS })
  const dialog = useRef<HTMLDialogElement>(null)
  if (!halts.data) return null
  const { halts: rows, mayHalt } = halts.data
  if (rows.length === 0 && !mayHalt) return null
  return (
    <section className={rows.length > 0 ? 'halts on' : 'halts'} aria-label="Halts">
      <div className="halts-head">
        {/* Always present, so that screen readers announce its changes. */}
        <p role="status">{rows.length === 0 ? 'Nothing is halted.' : count(rows.length, 'active halt')}</p>
        {mayHalt && (
          <button type="button" className="quiet" onClick={() => dialog.current?.showModal()}>
            Halt…
          </button>
        )}
      </div>
      {rows.length > 0 && (
        <ul>
          {rows.map((row) => (
            <Halted key={row.id} row={row} />
          ))}
        </ul>
      )}
      {mayHalt && <HaltDialog dialog={dialog} />}
    </section>
  )
}

function Halted({ row }: { row: HaltRow }): ReactElement {
  const client = useQueryClient()
  const release = useMutation<HaltRow, ApiError>({
    mutationFn: () => deleteJson(`/api/halts/${encodeURIComponent(row.id)}`),
    onSettled: () => client.invalidateQueries(),
  })
  const target = wordsOfTarget(row.target)
  const empty = emptyReach(row)
  return (
    <li>
      <div className="halts-what">
        <p>
          <b>
            Halted: <Exact text={target} />
          </b>{' '}
          <Exact text={toSentence(row.reason)} />
        </p>
        <p className="halts-more">
          {row.by !== undefined && (
            <>
              By <Exact text={row.by} className="strong" />
              {', '}
            </>
          )}
          <Ago ms={row.since} />. {wordsOfReach(row.reach)}
          {empty === undefined ? ' now.' : <Exact text={`: it matches nothing now, because ${empty}`} />}
          {row.inForce && (
            <>
              {' '}
              <Exact text={wordsOfForce(row.inForce)} />
            </>
          )}
        </p>
        {release.error && (
          <p className="problem" role="alert">
            {release.error.message}
          </p>
        )}
      </div>
      {row.mayRelease && (
        <button type="button" disabled={release.isPending} onClick={() => release.mutate()}>
          Release<span className="unseen"> {target}</span>
        </button>
      )}
    </li>
  )
}

const LABELS: Readonly<Record<TargetField, { readonly label: string; readonly example: string }>> = {
  user: { label: 'User', example: 'vera' },
  tool: { label: 'Tools', example: 'files:*, group:web' },
  session: { label: 'Session', example: '' },
  tenant: { label: 'Tenant', example: '' },
}

/** Asks what to halt and why. A native dialog keeps the focus, closes on Escape, and returns the focus. */
export function HaltDialog({ dialog }: { dialog: RefObject<HTMLDialogElement | null> }): ReactElement {
  const id = useId()
  const [opened, setOpened] = useState(0)
  return (
    <dialog
      ref={dialog}
      className="form-dialog"
      aria-labelledby={`${id}-title`}
      aria-describedby={`${id}-about`}
      onClose={() => setOpened(opened + 1)}
    >
      <h2 id={`${id}-title`}>Halt</h2>
      <p id={`${id}-about`} className="dim">
        Stops every call that matches all fields, now: new, waiting and running ones.
      </p>
      {/* A new form at each opening, so the fields are empty. */}
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
  const message = problem ?? halt.error?.message

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
      <div className="form-fields">
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
        Everything that I may halt
      </label>
      <div className="field">
        <label htmlFor={`${id}-reason`}>Reason (the model sees it)</label>
        <input id={`${id}-reason`} name="reason" maxLength={500} required />
      </div>
      {message !== undefined && (
        <p className="problem" role="alert">
          <Exact text={message} />
        </p>
      )}
      {(isForced || halt.error?.code === 'halt_empty') && (
        <label className="halt-all">
          <input type="checkbox" checked={isForced} onChange={(event) => setForced(event.target.checked)} /> Halt it
          anyway, for a user or tool that does not exist yet
        </label>
      )}
      {empty !== undefined && (
        <p className="problem" role="alert">
          <Exact text={`The halt is set, but matches nothing now: ${empty}`} />
        </p>
      )}
      <div className="form-buttons">
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
