import { type ReactElement, useState } from 'react'
import { useVerdicts, verdicts } from '../approval-verdicts.ts'
import { formatDuration, formatTime, plural } from '../format.ts'
import {
  coverageText,
  type FieldFreedom,
  firstDraft,
  type GrantDraft,
  livesOf,
  runText,
  toGrant,
} from '../grant-draft.ts'
import { useNow } from '../hooks.ts'
import type { ApprovalRow, GrantableField, MayGrant } from '../wire.ts'
import { Exact } from './exact.tsx'
import { DialogButton, DialogButtons, Field, Problem, Select } from './form.tsx'

interface GrantButtonProps {
  readonly approval: ApprovalRow
  readonly may: MayGrant
  /** The typed reason. */
  readonly reason: string
}

/** Approves a request and further ones like it. The dialog says in words what is granted. */
export function GrantButton({ approval, may, reason }: GrantButtonProps): ReactElement {
  return (
    <DialogButton
      label="Approve equal calls…"
      title="Approve equal calls"
      about="You approve this call, and further ones that then run without asking. You can revoke them under Grants."
    >
      {(close) => <GrantForm approval={approval} may={may} reason={reason} close={close} />}
    </DialogButton>
  )
}

const COVERS = {
  input: 'calls with exactly this input',
  fields: 'calls that differ in some fields only',
  tool: 'any call of this tool by this user',
} as const

function GrantForm({ approval, may, reason, close }: GrantButtonProps & { close: () => void }): ReactElement {
  const [draft, setDraft] = useState<GrantDraft>(() => firstDraft(may))
  const [problem, setProblem] = useState('')
  const isSending = useVerdicts().sending.has(approval.id)
  const change = (part: Partial<GrantDraft>): void => {
    setDraft({ ...draft, ...part })
    setProblem('')
  }
  const made = toGrant(draft, may)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if ('problem' in made) return setProblem(made.problem)
        verdicts.approve([approval], reason, { grant: made.grant })
        close()
      }}
    >
      <fieldset className="stack tight">
        <legend className="label">What</legend>
        {may.covers.map((one) => (
          <label key={one} className="row">
            <input type="radio" name="covers" checked={draft.covers === one} onChange={() => change({ covers: one })} />
            {COVERS[one]}
          </label>
        ))}
      </fieldset>
      {draft.covers === 'fields' && <GrantFields may={may} draft={draft} change={change} />}
      <div className="form-fields">
        <Select
          label="For how long"
          options={livesOf(may).map((ms) => [String(ms), formatDuration(ms)] as const)}
          value={String(draft.forMs)}
          apply={(to) => change({ forMs: Number(to) })}
        />
        <Field label={`How many more calls (at most ${may.maxUses})`}>
          {(id) => (
            <input
              id={id}
              inputMode="numeric"
              value={draft.uses}
              onChange={({ target }) => change({ uses: target.value })}
            />
          )}
        </Field>
      </div>
      {may.run !== undefined && (
        <label className="row">
          <input
            type="checkbox"
            checked={draft.isAnyRun}
            onChange={({ target }) => change({ isAnyRun: target.checked })}
          />
          In other runs of this user, too
        </label>
      )}
      <GrantWords approval={approval} may={may} made={made} />
      <Problem text={problem} />
      <DialogButtons cancel="Cancel" close={close}>
        <button type="submit" className="approve" disabled={isSending}>
          Approve and grant
        </button>
      </DialogButtons>
    </form>
  )
}

interface GrantWordsProps extends Pick<GrantButtonProps, 'approval' | 'may'> {
  readonly made: ReturnType<typeof toGrant>
}

/** Says what the grant lets happen. */
function GrantWords({ approval: { user = 'nobody', tool, run }, may, made }: GrantWordsProps): ReactElement {
  const nowMs = useNow(1000)
  if ('problem' in made) return <p className="grant-words dim">{made.problem}</p>
  const { grant } = made
  const { uses = 1, forMs = 0 } = grant
  return (
    <p className="grant-words">
      <Exact text={user} className="strong" /> may call <Exact text={tool} className="id" />{' '}
      <Exact text={coverageText(grant, may)} />, {uses} more {plural(uses, 'time')} until{' '}
      {formatTime(nowMs + forMs, nowMs).replace(/(:\d\d):\d\d$/, '$1')}
      <Exact text={runText(grant, run)} />.
    </p>
  )
}

interface GrantFieldsProps {
  readonly may: MayGrant
  readonly draft: GrantDraft
  readonly change: (part: Partial<GrantDraft>) => void
}

/** Shows the fields that may differ, each with its freedom. */
function GrantFields({ may: { fields }, draft, change }: GrantFieldsProps): ReactElement {
  return (
    <ul className="grant-fields">
      {fields.map((field) => {
        const { name } = field
        const freedom = draft.freedoms.get(name) ?? 'equal'
        return (
          <li key={name} className="row">
            <Select
              label={<Exact text={name} className="id" />}
              options={freedomsOf(field)}
              value={freedom}
              apply={(to) =>
                change({
                  freedoms: new Map(draft.freedoms).set(name, to as FieldFreedom),
                  bounds: draft.bounds.has(name) ? draft.bounds : new Map(draft.bounds).set(name, textOf(field.value)),
                })
              }
            />
            {freedom === 'upTo' && (
              <Field label={<>The most of {name}</>}>
                {(id) => (
                  <input
                    id={id}
                    inputMode="decimal"
                    value={draft.bounds.get(name) ?? ''}
                    onChange={({ target }) => change({ bounds: new Map(draft.bounds).set(name, target.value) })}
                  />
                )}
              </Field>
            )}
          </li>
        )
      })}
    </ul>
  )
}

const MAX_SHOWN = 40

function freedomsOf({ value, mayBound }: GrantableField): readonly (readonly [FieldFreedom, string])[] {
  const text = typeof value === 'bigint' ? String(value) : JSON.stringify(value)
  const shown = text === undefined ? 'as in this call' : `= ${text.slice(0, MAX_SHOWN)}`
  return [['equal', shown], ...(mayBound ? [['upTo', 'up to…'] as const] : []), ['any', 'anything']]
}

/** Returns a value as a person writes it; empty for what is not a number or a text. */
function textOf(value: unknown): string {
  return typeof value === 'number' || typeof value === 'string' ? String(value) : ''
}
