import { type ReactElement, useMemo, useState } from 'react'
import { useVerdicts, verdicts } from '../approval-verdicts.ts'
import { useApi } from '../hooks.ts'
import { changesIn, changesOf, type FieldChange, toDraft } from '../input-edit.ts'
import { type Draft, type Problems, toField, toInput } from '../input-form.ts'
import { writeDigits } from '../digits.ts'
import type { ApprovalRow, ToolBody } from '../wire.ts'
import { Exact } from './exact.tsx'
import { DialogButton, DialogButtons, Problem } from './form.tsx'
import { InputFields } from './input-form.tsx'
import { Pending } from './panels.tsx'

interface EditButtonProps {
  readonly approval: ApprovalRow
  /** The typed reason. */
  readonly reason: string
}

/** Approves a request with a changed input. The dialog shows each change before it is sent. */
export function EditButton({ approval, reason }: EditButtonProps): ReactElement {
  return (
    <DialogButton
      label="Change the input…"
      title="Change the input"
      about="The call runs with the changed input, if the rules allow that. The model is told what you changed."
    >
      {(close) => <EditLoader approval={approval} reason={reason} close={close} />}
    </DialogButton>
  )
}

interface EditFormProps extends EditButtonProps {
  readonly close: () => void
}

function EditLoader(props: EditFormProps): ReactElement {
  const { tool, user } = props.approval
  const answer = useApi<ToolBody>({
    key: ['tool', tool, user ?? '', '', ''],
    path: '/api/tool',
    parameters: { tool, as: user },
  })
  return (
    <>
      <Pending answer={answer} what="the fields" />
      {answer.data && <EditForm {...props} schema={answer.data.inputSchema} />}
    </>
  )
}

const NONE: Problems = new Map()

function EditForm({ approval, reason, close, schema }: EditFormProps & { schema: unknown }): ReactElement {
  const { input } = approval
  const field = useMemo(() => toField(schema), [schema])
  const before = useMemo(() => toDraft(field, input), [field, input])
  const [draft, setDraft] = useState<Draft>(before)
  const [problem, setProblem] = useState('')
  const isSending = useVerdicts().sending.has(approval.id)
  const { patch, changes } = changesOf(field, { input, before, after: draft })
  if (field.kind !== 'object')
    return (
      <>
        <p>The schema of this tool has no fields that a form can show.</p>
        <DialogButtons cancel="Close" close={close} />
      </>
    )
  // Untouched fields may have what the form cannot show. Only the changed ones must be right.
  const wrong: Problems =
    changes.length === 0
      ? NONE
      : new Map(
          [...toInput(field, draft).problems].filter(([at]) => changes.some(({ pointer }) => at.startsWith(pointer))),
        )
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (changes.length === 0) return setProblem('Nothing is changed.')
        if (wrong.size > 0) return setProblem('A changed field is not right yet.')
        verdicts.approve([approval], reason, { input: patch })
        close()
      }}
    >
      <InputFields
        field={field}
        draft={draft}
        change={(to) => {
          setDraft(to)
          setProblem('')
        }}
        problems={wrong}
      />
      <Changes changes={changes} />
      <Problem text={problem} />
      <DialogButtons cancel="Cancel" close={close}>
        <button type="submit" className="approve" disabled={isSending}>
          Approve with these changes
        </button>
      </DialogButtons>
    </form>
  )
}

/** Shows each changed field: what it was, and what it becomes. */
function Changes({ changes }: { changes: readonly FieldChange[] }): ReactElement {
  if (changes.length === 0) return <p className="dim">Nothing is changed yet.</p>
  return (
    <ul className="changes" aria-label="Changes">
      {changes.map(({ pointer, from, to }) => (
        <li key={pointer}>
          <Exact text={pointer.replace(/^\/(?=[^/]*$)/, '')} className="id" />: <Value value={from} /> →{' '}
          <Value value={to} />
        </li>
      ))}
    </ul>
  )
}

function Value({ value }: { value: unknown }): ReactElement {
  return value === undefined ? <em>absent</em> : <Exact text={writeDigits(value)} className="id" />
}

/** Shows what an earlier approver changed. Everybody who approves it approves this change. */
export function Edited({ approval: { edit, input } }: { approval: ApprovalRow }): ReactElement | null {
  if (!edit) return null
  return (
    <div className="edited">
      <p>
        <Exact text={edit.by} className="strong" /> changed the input. You approve the changed one.
      </p>
      <Changes changes={changesIn(edit.input, input)} />
    </div>
  )
}
