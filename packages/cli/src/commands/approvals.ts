import type { Approval } from '@toolgate/core'
import { grantText, trailLines } from '@toolgate/core/call'
import type { ApprovalRow } from '@toolgate/gateway'
import type { ApprovalDecision, ApprovalFilter, ApprovalStatus } from '@toolgate/core/stores'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, jsonText, type Paint, painter, printable, printJson, printLine } from '../io.ts'
import { count } from '../render.ts'
import { type GrantOptions, toGrantRequest } from './grants.ts'
import { gatewayOf, nextCommand } from '../next-command.ts'
import { toPatch } from './changed-fields.ts'

export interface ApprovalsOptions extends TargetOptions {
  readonly status: ApprovalStatus
  readonly all?: boolean
  readonly user?: string
  readonly tool?: string
  readonly limit?: number
  readonly json?: boolean
}

export interface DecideOptions extends TargetOptions, GrantOptions {
  readonly reason?: string
  /** Changes of the input, such as `amount=100`. */
  readonly set?: readonly string[]
  readonly json?: boolean
}

/** `toolgate approvals`: prints approvals with their inputs, newest first. */
export async function approvalsCommand(options: ApprovalsOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).approvals(filterOf(options))
  const { approvals } = body
  if (options.json) printJson(io.stdout, body)
  else if (approvals.length === 0) printLine(io.stdout, options.all ? 'No approvals.' : `Nothing is ${options.status}.`)
  else {
    const paint = painter(io.stdout, io.env)
    const nowMs = Date.now()
    for (const approval of approvals) printLine(io.stdout, `${linesOf(approval, paint, nowMs).join('\n')}\n`)
    if (approvals.some(({ status }) => status === 'pending'))
      printLine(
        io.stdout,
        `"${nextCommand('approvals approve <id>', gatewayOf(options))}" approves one call with exactly this input; "reject <id>" rejects it.`,
      )
  }
  return 'ok'
}

/** `toolgate approvals approve|reject|revoke <id>`. */
export async function decideCommand(
  { id, decision }: { readonly id: string; readonly decision: ApprovalDecision },
  options: DecideOptions,
  io: Io,
): Promise<ExitName> {
  const { reason, set, json } = options
  const grant = toGrantRequest(options)
  const verdict = {
    decision,
    ...(reason === undefined ? {} : { reason }),
    ...(set && { input: toPatch(set) }),
    ...(grant && { grant }),
  }
  const approval = await createApi(findTarget(options, io)).decide(id, verdict)
  if (json) printJson(io.stdout, approval)
  else
    printLine(
      io.stdout,
      `${statusWord(approval, painter(io.stdout, io.env))}  ${printable(approval.tool)} ${forWhom(approval)}${progressOf(approval)}`,
    )
  if (approval.grant && !json)
    printLine(
      io.stdout,
      `granted  ${printable(grantText(approval.grant))}\nTo revoke it: toolgate grants revoke ${printable(approval.grant.id)}`,
    )
  return 'ok'
}

function filterOf({ status, all, user, tool, limit }: ApprovalsOptions): ApprovalFilter {
  const filter = { status: all ? undefined : status, user, tool, limit }
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
}

const STYLES = {
  pending: 'yellow',
  approved: 'green',
  rejected: 'red',
  revoked: 'red',
  expired: 'dim',
  consumed: 'dim',
} as const satisfies Record<ApprovalStatus, Parameters<Paint>[0]>

function statusWord({ status }: Approval, paint: Paint): string {
  return paint(STYLES[status], status)
}

function forWhom({ user, tenant, keyMadeBy, behind = [] }: Approval): string {
  const who = `for ${printable(user ?? 'an unknown user')}`
  const where = tenant === undefined ? '' : ` of ${printable(tenant)}`
  const maker = keyMadeBy === undefined ? '' : `, with a key made by ${printable(keyMadeBy)}`
  const others = behind.length === 0 ? '' : `, also behind it: ${printable(behind.join(', '))}`
  return `${who}${where}${maker}${others}`
}

function linesOf(approval: ApprovalRow, paint: Paint, nowMs: number): string[] {
  const head = `${statusWord(approval, paint)}  ${paint('bold', printable(approval.tool))} ${forWhom(approval)}${progressOf(approval)}, ${timeOf(approval, nowMs)}`
  const input = jsonText(approval.input ?? null, 2).replace(/^/gm, '  ')
  const trail = approval.trail ? trailLines(approval.trail).map((line) => `  ${printable(line)}`) : []
  const why = approval.why === undefined ? [] : [`  why ${printable(approval.why)}`]
  const edit = editLines(approval)
  return [head, `  id ${printable(approval.id)}`, ...decidedLine(approval), ...why, ...trail, ...edit, input]
}

/** Returns who has approved, where several must: `, 1 of 2 approved by ada`. */
function progressOf({ needs }: Partial<Pick<ApprovalRow, 'needs'>>): string {
  if (!needs) return ''
  const { count: people, roles, approvedBy } = needs
  const by = approvedBy.length === 0 ? '' : ` by ${printable(approvedBy.map((one) => one.by).join(' and '))}`
  const of = roles
    ? `, needs ${printable(
        Object.entries(roles)
          .map(([role, n]) => `${n} with the role ${role}`)
          .join(' and '),
      )}`
    : ''
  return `, ${approvedBy.length} of ${people} approved${by}${of}`
}

function editLines({ edit, mayEdit }: Pick<ApprovalRow, 'edit' | 'mayEdit'>): readonly string[] {
  if (edit) return [`  changed by ${printable(edit.by)}: ${jsonText(edit.input)}`]
  return mayEdit ? ['  you may change the input: --set <field>=<value>'] : []
}

function timeOf({ status, requestedAt, expiresAt }: Approval, nowMs: number): string {
  const isOpen = status === 'pending' || status === 'approved'
  if (!isOpen) return `asked for at ${new Date(requestedAt).toISOString()}`
  return `expires in ${count(Math.max(1, Math.ceil((expiresAt - nowMs) / 60_000)), 'minute')}`
}

function decidedLine({ decidedBy, decidedAt, reason }: Approval): string[] {
  if (decidedBy === undefined) return []
  const why = reason === undefined ? '' : `: ${printable(reason)}`
  const when = decidedAt === undefined ? '' : ` at ${new Date(decidedAt).toISOString()}`
  return [`  decided by ${printable(decidedBy)}${when}${why}`]
}
