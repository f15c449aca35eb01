import type { Approval } from '@toolgate/core'
import type { Approvals } from '@toolgate/core/call'
import type { Grant } from '@toolgate/core/stores'
import type { JsonObject } from '@toolgate/values/json'
import { createRedactor, type Redactor } from '@toolgate/values/redact'
import type { GroupRow, NeedRow, ServerRow } from '../model/rows.ts'
import type { GatewayConfig } from './config.ts'

/** The gateway's redactor. It masks the secrets of the configuration, and each reload updates them. */
export interface GatewayRedactor extends Redactor {
  /** Returns a redactor that also masks further secrets. */
  with(secrets: readonly string[] | undefined): Redactor
  /** Every secret that the redactor masks. Never log or show them. */
  secrets(): readonly string[]
  /**
   * Replaces the secrets. Recent former secrets stay masked, as servers and logs may still contain them. Their number
   * is bounded.
   */
  follow(secrets: readonly string[] | undefined): void
}

const MAX_FORMER = 256
const MAX_FORMER_CHARS = 128 * 1024

/** Returns the gateway's redactor. It has the built-in rules, and the rules and secrets of the configuration. */
export function createGatewayRedactor({ redact, secrets: given = [] }: Pick<GatewayConfig, 'redact' | 'secrets'>) {
  let secrets = given
  /** Former secrets, the latest first. */
  let former: readonly string[] = []
  const known = () => [...secrets, ...former]
  const create = (further: readonly string[] = []) => createRedactor({ ...redact, secrets: [...known(), ...further] })
  let current = create()
  const redactor: GatewayRedactor = {
    redactText: (text) => current.redactText(text),
    redactValue: (value) => current.redactValue(value),
    with: create,
    secrets: known,
    follow(next = []) {
      const before = new Set(known())
      if (next.length === secrets.length && next.every((secret, i) => secret === secrets[i])) return
      former = cutFormer([...before].filter((secret) => !next.includes(secret)))
      secrets = next
      current = create()
    },
  }
  return redactor
}

function cutFormer(secrets: readonly string[]): readonly string[] {
  let chars = 0
  return secrets.slice(0, MAX_FORMER).filter(({ length }) => (chars += length) <= MAX_FORMER_CHARS)
}

/** Returns a log that redacts its lines. */
export function redactLog<L extends { readonly message: string; readonly detail?: string }>(
  log: (line: L) => void,
  { redactText }: Redactor,
): (line: L) => void {
  return (line) =>
    log({
      ...line,
      message: redactText(line.message),
      ...(line.detail === undefined ? {} : { detail: redactText(line.detail) }),
    })
}

/** Returns an approval with its secrets masked, and without the fields that only the gateway may read. */
export function redactApproval({ asker: _, ...approval }: Approval, redact: Redactor): Approval {
  return {
    ...approval,
    input: redact.redactValue(approval.input),
    ...(approval.why === undefined ? {} : { why: redact.redactText(approval.why) }),
    ...(approval.told === undefined ? {} : { told: redact.redactText(approval.told) }),
    ...(approval.reason === undefined ? {} : { reason: redact.redactText(approval.reason) }),
    ...(approval.approvedBy && { approvedBy: approval.approvedBy.map((vote) => redactVote(vote, redact)) }),
    ...(approval.edit && { edit: { ...approval.edit, input: redact.redactValue(approval.edit.input) as JsonObject } }),
  }
}

function redactVote<V extends { readonly reason?: string }>(vote: V, { redactText }: Redactor): V {
  return vote.reason === undefined ? vote : { ...vote, reason: redactText(vote.reason) }
}

export function redactApprovals(approvals: Approvals, redact: Redactor): Approvals {
  const show = (approval: Approval): Approval => redactApproval(approval, redact)
  return {
    mayDecide: (approver, approval) => approvals.mayDecide(approver, approval),
    async get(id) {
      const approval = await approvals.get(id)
      return approval && show(approval)
    },
    list: async (filter) => (await approvals.list(filter)).map(show),
    async decide(approver, id, verdict) {
      const { grant, ...approval } = await approvals.decide(approver, id, verdict)
      return { ...show(approval), ...(grant && { grant: redactGrant(grant, redact) }) }
    },
  }
}

/** Returns a grant with its secrets masked, and without what only the gateway compares. */
export function redactGrant({ clauses: _, asked: __, ...grant }: Grant, redact: Redactor): Grant {
  const { reason, revokeReason } = grant
  return {
    ...grant,
    clauses: [],
    ...('input' in grant && { input: redact.redactValue(grant.input) }),
    ...(reason !== undefined && { reason: redact.redactText(reason) }),
    ...(revokeReason !== undefined && { revokeReason: redact.redactText(revokeReason) }),
  }
}

export function redactServer(row: ServerRow, { redactText }: Redactor): ServerRow {
  return {
    ...row,
    ...(row.reason === undefined ? {} : { reason: redactText(row.reason) }),
    rejected: row.rejected.map(({ kind, name, reason, ...part }) => ({
      kind,
      ...part,
      name: redactText(name),
      reason: redactText(reason),
    })),
  }
}

export function redactGroup(row: GroupRow, { redactText }: Redactor): GroupRow {
  return row.reason === undefined ? row : { ...row, reason: redactText(row.reason) }
}

/** Masks the URL path and the reason, which may contain secrets. */
export function redactNeed(row: NeedRow, { redactText }: Redactor): NeedRow {
  return {
    ...row,
    what: redactText(row.what),
    ...(row.reason === undefined ? {} : { reason: redactText(row.reason) }),
    ...(row.suggestion === undefined ? {} : { suggestion: redactText(row.suggestion) }),
  }
}
