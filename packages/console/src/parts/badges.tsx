import type { ReactElement } from 'react'
import { lookOf } from '../audit-feed.ts'
import { type Look, OUTCOME_LOOKS, type State, STATE_LOOKS, notesOf, wordsOfNote } from '../states.ts'
import type { ApprovalStatus, AuditRecord, OutcomeWord, MayStillRow, ServerRow, PinRow, PinsBody } from '../wire.ts'
import { useApi } from '../hooks.ts'

/** Shows a word with a colour and a shape, so that the meaning never depends on colour alone. */
export function Badge({ word, look }: { word: string; look: Look }): ReactElement {
  return <span className={`badge ${look}`}>{word}</span>
}

/** Shows an outcome: `allow`, `ask`, `wait` or `deny`. */
export function OutcomeBadge({ outcome }: { outcome: OutcomeWord }): ReactElement {
  return <Badge word={outcome} look={OUTCOME_LOOKS[outcome]} />
}

const ON: Readonly<Record<Exclude<MayStillRow['on'], 'now'>, string>> = {
  input: 'the input',
  run: 'the run',
  code: 'a hook',
}

/** Returns the dependencies of a decision: `depends on the input, not now`. Empty if it has none. */
function dependsOn(mayStill: readonly MayStillRow[] = []): string {
  const parts = Object.entries(ON).flatMap(([on, text]) => (mayStill.some((one) => one.on === on) ? [text] : []))
  const depends = parts.length === 0 ? [] : [`depends on ${parts.join(' and ')}`]
  return [...depends, ...(mayStill.some(({ on }) => on === 'now') ? ['not now'] : [])].join(', ')
}

/** The dependencies of a decision. Shows nothing if it has none. */
export function Depends({ on }: { on: readonly MayStillRow[] | undefined }): ReactElement | null {
  const text = dependsOn(on)
  return text === '' ? null : <span className="depends">{text}</span>
}

interface DecisionBadgeProps {
  readonly outcome: OutcomeWord
  readonly mayStill: readonly MayStillRow[] | undefined
}

/** Shows an outcome with the dependencies of the decision. */
export function DecisionBadge({ outcome, mayStill }: DecisionBadgeProps): ReactElement {
  return (
    <>
      <OutcomeBadge outcome={outcome} />
      <Depends on={mayStill} />
    </>
  )
}

export function StateBadge({ state }: { state: State }): ReactElement {
  return <Badge word={state} look={STATE_LOOKS[state]} />
}

const SERVER_LOOKS: Readonly<Record<ServerRow['status'], Look>> = {
  ready: 'good',
  starting: 'wait',
  down: 'bad',
  stopped: 'plain',
}

export function ServerBadge({ status }: Pick<ServerRow, 'status'>): ReactElement {
  return <Badge word={status} look={SERVER_LOOKS[status]} />
}

export function EventBadge({ record }: { record: AuditRecord }): ReactElement {
  return <Badge word={record.event} look={lookOf(record)} />
}

const APPROVAL_LOOKS: Readonly<Record<ApprovalStatus, Look>> = {
  pending: 'ask',
  approved: 'good',
  rejected: 'bad',
  revoked: 'bad',
  expired: 'plain',
  consumed: 'good',
}

export function ApprovalBadge({ status }: { status: ApprovalStatus }): ReactElement {
  return <Badge word={wordOfApproval(status)} look={APPROVAL_LOOKS[status]} />
}

export function wordOfApproval(status: ApprovalStatus): string {
  return status === 'consumed' ? 'approved, used' : status
}

const REFRESH_MS = 12_000
const NO_PINS: readonly PinRow[] = []

/** Fetches the pins that need attention. Call it once per page, not per row. */
export function usePins(): readonly PinRow[] {
  const { data } = useApi<PinsBody>({
    key: ['pins'],
    path: '/api/pins',
    parameters: { noted: 'true' },
    everyMs: REFRESH_MS,
  })
  return data?.pins ?? NO_PINS
}

/** Badges about the definition of a tool. */
export function PinNotes({ pin }: { pin: PinRow | undefined }): ReactElement | null {
  if (!pin) return null
  return (
    <>
      {notesOf(pin).map((note) => (
        <span key={note} title={wordsOfNote(note, pin)}>
          <Badge word={note} look="ask" />
        </span>
      ))}
    </>
  )
}
