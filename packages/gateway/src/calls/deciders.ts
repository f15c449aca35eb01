import type { Approval, Caller } from '@toolgate/core'
import { type Approvals, hasApproved, notOther, voterOf } from '@toolgate/core/call'
import type { CallerConfig } from '../config/config.ts'
import { approvalUrl } from './approval-doors.ts'

interface DecidersDeps {
  readonly approvals: Pick<Approvals, 'mayDecide'>
  /** The callers of the file, and people who logged in to the console. */
  readonly callers: readonly Pick<CallerConfig, 'for' | 'caller'>[]
}

/** Returns the callers with console keys and the people who logged in who may approve, in the given order. */
export function* decidersOf(approval: Approval, { approvals, callers }: DecidersDeps): Generator<Caller> {
  for (const { for: use, caller } of callers)
    if (
      use === 'console' &&
      approvals.mayDecide(caller, approval) &&
      !hasApproved(approval, voterOf(caller)) &&
      notOther(approval, caller) === undefined
    )
      yield caller
}

const MAX_NAMES = 3
const MAX_NAME_CHARS = 64

/**
 * Returns who can decide an approval, and where, as a sentence for the model. They are people of the caller's own tenant,
 * since others may not decide.
 *
 * @example
 * whoDecides(approval, deps)  // ada or somebody with the role approver can decide at https://tools.example.com/approvals/1
 */
export function whoDecides(
  approval: Approval,
  deps: DecidersDeps & { readonly publicUrl: string | undefined },
): string {
  const names = new Set<string>()
  for (const { user } of decidersOf(approval, deps)) {
    if (user !== undefined) names.add(plain(user))
    if (names.size === MAX_NAMES) break
  }
  const others = approval.approver?.by === 'other' ? 'another person with' : 'somebody with'
  const who = [...names].toSorted().join(', ')
  const roles = Object.keys(approval.approver?.roles ?? { approver: 1 }).join(' or ')
  const all = who === '' ? `${others} the role ${roles}` : `${who} or ${others} the role ${roles}`
  const url = approvalUrl(approval.id, deps.publicUrl)
  const text = `${all} can decide${url === undefined ? '' : ` at ${url}`}.`
  // A name keeps its case.
  return who === '' ? `${text.charAt(0).toUpperCase()}${text.slice(1)}` : text
}

function plain(name: string): string {
  const line = name.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
  return (line.length > MAX_NAME_CHARS ? `${line.slice(0, MAX_NAME_CHARS)}…` : line).toWellFormed()
}
