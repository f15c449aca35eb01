import type { Halt, HaltTarget } from '../state/halts.ts'
import type { PinEvent } from '../state/pins/notices.ts'
import type { Approval, AuditEntry, AuditSink, Clock, DecisionMade, GateEvent } from '../ports/ports.ts'
import type { Grant } from '../ports/grants.ts'
import { peopleOf } from '../policy/approver.ts'
import { recordedKind } from '../tools/tool-id.ts'
import type { Emitter, ToolgateError } from '@toolgate/values'
import { patchedFields } from '@toolgate/values/json'

/** An event of a gate, for consoles and metrics. */
export type GateNotice =
  | { readonly event: 'policy-changed'; readonly policyRevision: number }
  | { readonly event: 'approval-requested' | 'approval-decided'; readonly approval: Approval }
  | { readonly event: 'grant-made' | 'grant-revoked'; readonly grant: Grant }
  | { readonly event: 'preferences-changed' | 'connections-changed' }
  | { readonly event: 'halt-set' | 'halt-released'; readonly halt: Halt }
  | { readonly event: `tool-${PinEvent['kind']}`; readonly pin: PinEvent }

export type RecordedRevisions = Pick<AuditEntry, 'policy_revision' | 'catalog_revision' | 'in_force'>

/** Records and emits the events of a gate outside calls. Never throws. */
export interface GateRecorder {
  policyChanged(revisions: RecordedRevisions): void
  requested(approval: Approval): void
  granted(grant: Grant): void
  grantRevoked(grant: Grant): void
  decided(approval: Approval, made: DecisionMade): void
  /** A person tried to decide an approval as they may not. */
  refused(approval: Approval, made: DecisionMade, why: ToolgateError): void
  halted(halt: Halt): void
  released(halt: Halt, by: string | undefined): void
  pinned(pin: PinEvent): void
}

interface GateRecorderOptions {
  readonly audit: AuditSink
  readonly clock: Pick<Clock, 'wallMs'>
  readonly events: Emitter<[GateNotice]>
  readonly revisions: () => RecordedRevisions
  readonly onFault: (error: unknown) => void
}

export function createGateRecorder({ audit, clock, events, revisions, onFault }: GateRecorderOptions): GateRecorder {
  function record(event: GateEvent, entry: Partial<AuditEntry>, at: RecordedRevisions = revisions()): void {
    try {
      const written = audit.write({ ...entry, ...at, event, wallMs: clock.wallMs() })
      if (written instanceof Promise) written.catch(onFault)
    } catch (error) {
      onFault(error)
    }
  }

  return {
    policyChanged(at) {
      record('policy_changed', {}, at)
      events.emit({ event: 'policy-changed', policyRevision: at.policy_revision })
    },
    // The attempt that requests the approval has its own record.
    requested: (approval) => events.emit({ event: 'approval-requested', approval }),
    decided(approval, { by, decision, reason }) {
      const { status } = approval
      const said = [status, ...progressOf(approval, decision), ...changedIn(approval)].join(', ')
      const detail = reason === undefined ? said : `${said}: ${reason}`
      record('approval_decided', { ...aboutApproval(approval), user_id: by, reason: status, detail })
      events.emit({ event: 'approval-decided', approval })
    },
    granted(grant) {
      record('grant_made', { ...aboutGrant(grant), user_id: grant.grantedBy, detail: grantText(grant) })
      events.emit({ event: 'grant-made', grant })
    },
    grantRevoked(grant) {
      const { revokedBy, revokeReason, used, uses } = grant
      const why = revokeReason === undefined ? '' : `: ${revokeReason}`
      record('grant_revoked', {
        ...aboutGrant(grant),
        user_id: revokedBy,
        detail: `used ${used} of ${uses} times by ${grant.user}${why}`,
      })
      events.emit({ event: 'grant-revoked', grant })
    },
    refused(approval, { by, decision }, { code, message }) {
      const detail = `${decision}: ${message}`
      record('approval_refused', { ...aboutApproval(approval), user_id: by, reason: code, detail })
    },
    halted(halt) {
      record('halt_set', { ...aboutTarget(halt.target), user_id: halt.by, detail: textOf(halt) })
      events.emit({ event: 'halt-set', halt })
    },
    released(halt, by) {
      record('halt_released', { ...aboutTarget(halt.target), user_id: by, detail: textOf(halt) })
      events.emit({ event: 'halt-released', halt })
    },
    pinned(pin) {
      record(PIN_RECORDS[pin.kind], {
        tool: pin.tool,
        kind: recordedKind(pin.tool),
        reason: PIN_REASONS[pin.kind],
        user_id: pin.kind === 'accepted' ? pin.by : undefined,
        detail: pin.text,
      })
      events.emit({ event: `tool-${pin.kind}`, pin })
    },
  }
}

function aboutApproval({ id, tenant, tool }: Approval): Partial<AuditEntry> {
  return { approval_id: id, tenant, tool, kind: recordedKind(tool) }
}

/** Returns how many people have approved, of an approval that needs several. */
function progressOf({ approvedBy, approver, status }: Approval, decision: DecisionMade['decision']): readonly string[] {
  const people = peopleOf(approver)
  if (people < 2 || status === 'rejected' || status === 'revoked') return []
  const yes = `${approvedBy?.length ?? 0} of ${people} approved`
  return decision === 'revoke' ? ['taken back', yes] : [yes]
}

/** Returns the names of the fields that an approver changed. Their values are in the record of the call. */
function changedIn({ edit, status }: Approval): readonly string[] {
  return edit && (status === 'pending' || status === 'approved')
    ? [
        `changed ${patchedFields(edit.input)
          .map((path) => path.join('.'))
          .join(', ')}`,
      ]
    : []
}

const PIN_REASONS: { readonly [Kind in PinEvent['kind']]?: string } = { added: 'tool_new', differs: 'tool_differs' }

const PIN_RECORDS = {
  added: 'tool_changed',
  changed: 'tool_changed',
  differs: 'tool_changed',
  flagged: 'tool_flagged',
  accepted: 'tool_accepted',
} as const satisfies Record<PinEvent['kind'], GateEvent>

function aboutGrant({ id, tenant, tool }: Grant): Partial<AuditEntry> {
  return { approval_id: id, grant: id, tenant, tool, kind: recordedKind(tool) }
}

/** Returns for whom, for what, how often and until when. The sink redacts it. */
export function grantText({ user, covers, fields = {}, uses, expiresAt, run, anyRun, reason }: Grant): string {
  const free = Object.entries(fields).map(([pointer, rule]) =>
    'any' in rule ? `${pointer} any` : `${pointer} from ${rule.from} up to ${rule.upTo}`,
  )
  const what =
    covers === 'tool' ? 'any input' : covers === 'input' ? 'this input' : `this input, but ${free.join(', ')}`
  const where = anyRun ? ', in any run' : run === undefined ? '' : `, in the run ${run}`
  const why = reason === undefined ? '' : `: ${reason}`
  return `for ${user}: ${what}${where}, ${uses} times until ${new Date(expiresAt).toISOString()}${why}`
}

/** Returns the fields of a halt's target. `user_id` is the person who acted; the halted user is in `detail`. */
function aboutTarget({ tool, tenant, session }: HaltTarget): Partial<AuditEntry> {
  return { tool, tenant, session_id: session }
}

function textOf({ target, reason }: Halt): string {
  const named = Object.entries(target).map(([field, value]) => (field === 'all' ? 'all' : `${field} ${String(value)}`))
  return `${named.join(', ')}: ${reason}`
}
