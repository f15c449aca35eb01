import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, type SubmitEvent, useDeferredValue, useState } from 'react'
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
import { DialogButton, DialogButtons, Field, Problem } from './form.tsx'

const LABELS: Readonly<Record<TargetField, { readonly label: string; readonly example: string }>> = {
  user: { label: 'User', example: 'vera' },
  tool: { label: 'Tools', example: 'files:*, group:web' },
  session: { label: 'Session', example: '' },
  tenant: { label: 'Tenant', example: '' },
}

type Fields = Readonly<Partial<Record<TargetField, string>>>

interface HaltButtonProps {
  readonly label: string
  readonly className?: string
  /** The initial values of the fields. */
  readonly target?: Fields
}

/** Opens the dialog with a target filled in. It is absent if the person may not halt. */
export function HaltButton(props: HaltButtonProps): ReactElement | null {
  const halts = useApi<HaltsBody>({ key: ['halts'], path: '/api/halts' })
  return halts.data?.mayHalt === true ? <HaltDialogButton className="reject" {...props} /> : null
}

/** Asks for the target and the reason of a halt. */
export function HaltDialogButton({ label, className, target = {} }: HaltButtonProps): ReactElement {
  return (
    <DialogButton
      label={label}
      className={className}
      title="Halt"
      about="Stops every call that matches all filled fields at once: new, waiting and running ones."
    >
      {(close) => <HaltForm target={target} close={close} />}
    </DialogButton>
  )
}

function HaltForm({ target, close }: { target: Fields; close: () => void }): ReactElement {
  const client = useQueryClient()
  const [fields, setFields] = useState(target)
  const [isAll, setAll] = useState(false)
  const [problem, setProblem] = useState<string>()
  const halt = useMutation<HaltRow, ApiError, HaltBody>({
    mutationFn: (body) => postJson('/api/halts', body),
    onSuccess: (row) => emptyReach(row) === undefined && close(),
    onSettled: () => client.invalidateQueries(),
  })
  const empty = halt.data && emptyReach(halt.data)

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
          <TargetInput
            key={field}
            field={field}
            typed={fields[field] ?? ''}
            first={target[field]}
            isOff={isAll}
            change={(text) => setFields({ ...fields, [field]: text })}
          />
        ))}
      </div>
      <label className="halt-all">
        <input type="checkbox" name="all" checked={isAll} onChange={(event) => setAll(event.target.checked)} />{' '}
        Everything that I may halt
      </label>
      <Preview fields={fields} isAll={isAll} />
      <Field label="Reason (the model sees it; optional)">
        {(id) => <input id={id} name="reason" maxLength={500} placeholder="a person has halted it" />}
      </Field>
      <Problem text={problem ?? halt.error?.message} />
      <Problem text={empty && `The halt is set, but matches nothing now: ${empty}`} />
      <DialogButtons cancel={empty === undefined ? 'Cancel' : 'Close'} close={close}>
        <button type="submit" className="reject" disabled={halt.isPending}>
          Halt now
        </button>
      </DialogButtons>
    </form>
  )
}

interface TargetInputProps {
  readonly field: TargetField
  readonly typed: string
  /** The initial value. */
  readonly first: string | undefined
  readonly isOff: boolean
  readonly change: (text: string) => void
}

function TargetInput({ field, typed, first, isOff, change }: TargetInputProps): ReactElement {
  const [isFocused, setFocused] = useState(false)
  const { label, example } = LABELS[field]
  return (
    <Field label={label}>
      {(id) => (
        <>
          <input
            id={id}
            name={field}
            placeholder={example}
            maxLength={8192}
            spellCheck={false}
            autoComplete="off"
            list={`${id}-names`}
            disabled={isOff}
            defaultValue={first}
            onFocus={() => setFocused(true)}
            onBlur={() => setFocused(false)}
            onChange={(event) => change(event.target.value)}
          />
          {isFocused && <Offered id={`${id}-names`} field={field} typed={typed} />}
        </>
      )}
    </Field>
  )
}

/** Suggests names that the gateway has seen. They are fetched when the field gets the focus. */
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
  const first = useCallers({ limit: 1 }, field === 'tool').data?.callers[0]
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

/** Shows the effect of the halt before it is set. */
function Preview({ fields, isAll }: { fields: Fields; isAll: boolean }): ReactElement {
  const target: Readonly<Record<string, string>> = useDeferredValue(toTarget(fields, isAll))
  const { data, error } = useApi<HaltReachBody>({
    key: ['reach', target],
    path: '/api/halts/reach',
    parameters: target,
    enabled: Object.keys(target).length > 0,
  })
  // A result for another target does not apply to this one.
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
