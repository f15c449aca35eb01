import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, type RefObject, type SubmitEvent, useDeferredValue, useId, useRef, useState } from 'react'
import { type ApiError, postJson } from '../api.ts'
import { useCallers } from '../callers.ts'
import {
  emptyReach,
  offeredNames,
  TARGET_FIELDS,
  type TargetField,
  toHaltBody,
  toTarget,
  wordsOfStopped,
} from '../halts.ts'
import { useApi } from '../hooks.ts'
import { useTools } from '../tools.ts'
import type { HaltBody, HaltReachBody, HaltRow, HaltsBody, PeopleBody } from '../wire.ts'
import { Exact } from './exact.tsx'

const LABELS: Readonly<Record<TargetField, { readonly label: string; readonly example: string }>> = {
  user: { label: 'User', example: 'vera' },
  tool: { label: 'Tools', example: 'files:*, group:web' },
  session: { label: 'Session', example: '' },
  tenant: { label: 'Tenant', example: '' },
}

type Fields = Readonly<Partial<Record<TargetField, string>>>

export interface HaltDialogProps {
  readonly dialog: RefObject<HTMLDialogElement | null>
  /** What the fields hold at first. */
  readonly target?: Fields
}

/** Opens the dialog with a target filled in. Absent for a person who may not halt. */
export function HaltButton({ target, label }: { target: Fields; label: string }): ReactElement | null {
  const halts = useApi<HaltsBody>({ key: ['halts'], path: '/api/halts' })
  const dialog = useRef<HTMLDialogElement>(null)
  if (halts.data?.mayHalt !== true) return null
  return (
    <>
      <button type="button" className="reject" onClick={() => dialog.current?.showModal()}>
        {label}
      </button>
      <HaltDialog dialog={dialog} target={target} />
    </>
  )
}

/** Asks what to halt and why. A native dialog keeps the focus, closes on Escape, and returns the focus. */
export function HaltDialog({ dialog, target = {} }: HaltDialogProps): ReactElement {
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
        Stops every call that matches all filled fields at once: new, waiting and running ones.
      </p>
      {/* A new form at each opening, so the fields are empty. */}
      <HaltForm key={opened} id={id} target={target} close={() => dialog.current?.close()} />
    </dialog>
  )
}

interface HaltFormProps {
  readonly id: string
  readonly target: Fields
  readonly close: () => void
}

function HaltForm({ id, target, close }: HaltFormProps): ReactElement {
  const client = useQueryClient()
  const [fields, setFields] = useState(target)
  const [isAll, setAll] = useState(false)
  const [focused, setFocused] = useState<TargetField>()
  const [problem, setProblem] = useState<string>()
  const halt = useMutation<HaltRow, ApiError, HaltBody>({
    mutationFn: (body) => postJson('/api/halts', body),
    onSuccess: (row) => emptyReach(row) === undefined && close(),
    onSettled: () => client.invalidateQueries(),
  })
  const empty = halt.data && emptyReach(halt.data)
  const message = problem ?? halt.error?.message

  function submit(event: SubmitEvent<HTMLFormElement>): void {
    event.preventDefault()
    const written = [...new FormData(event.currentTarget)].flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value] as const] : [],
    )
    const asked = toHaltBody(new Map(written))
    setProblem('problem' in asked ? asked.problem : undefined)
    if ('body' in asked) halt.mutate(asked.body)
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
              list={`${id}-${field}-names`}
              disabled={isAll}
              defaultValue={fields[field]}
              onFocus={() => setFocused(field)}
              onChange={(event) => setFields({ ...fields, [field]: event.target.value })}
            />
            {focused === field && <Offered id={`${id}-${field}-names`} field={field} typed={fields[field] ?? ''} />}
          </div>
        ))}
      </div>
      <label className="halt-all">
        <input type="checkbox" name="all" checked={isAll} onChange={(event) => setAll(event.target.checked)} />{' '}
        Everything that I may halt
      </label>
      <Preview fields={fields} isAll={isAll} />
      <div className="field">
        <label htmlFor={`${id}-reason`}>Reason (the model sees it)</label>
        <input id={`${id}-reason`} name="reason" maxLength={500} required />
      </div>
      {message !== undefined && (
        <p className="problem" role="alert">
          <Exact text={message} />
        </p>
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

/** Offers the names that the gateway has seen. They are fetched when the field has the focus. */
function Offered({ id, field, typed }: { id: string; field: TargetField; typed: string }): ReactElement {
  const asked = useDeferredValue(typed)
  const isOfPeople = field === 'user' || field === 'tenant'
  const filter: Readonly<Record<string, string>> = field === 'user' ? { text: asked, limit: '20' } : { limit: '1' }
  const people = useApi<PeopleBody>({
    key: ['people', filter],
    path: '/api/people',
    parameters: filter,
    enabled: isOfPeople,
  })
  const first = useCallers().data?.callers[0]
  const tools = useTools({ as: first?.user ?? '', enabled: field === 'tool' && first !== undefined })
  const names = {
    user: people.data?.people.flatMap(({ user }) => user ?? []) ?? [],
    tenant: people.data?.tenants ?? [],
    tool: tools.data?.tools.map((tool) => tool.id) ?? [],
    session: [],
  }[field]
  return (
    <datalist id={id}>
      {offeredNames(names, asked).map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  )
}

/** Says what the halt would stop, before it is set. */
function Preview({ fields, isAll }: { fields: Fields; isAll: boolean }): ReactElement {
  const target: Readonly<Record<string, string>> = useDeferredValue(toTarget(fields, isAll))
  const { data, error } = useApi<HaltReachBody>({
    key: ['reach', target],
    path: '/api/halts/reach',
    parameters: target,
    enabled: Object.keys(target).length > 0,
  })
  // What was found for another target does not count for this one.
  const isAsked = Object.keys(target).length > 0
  return (
    <p className="strong" role="status">
      {isAsked && error?.status === 400 ? (
        <Exact text={error.message} />
      ) : isAsked && data ? (
        <Exact text={wordsOfStopped(target, data)} />
      ) : (
        ''
      )}
    </p>
  )
}
