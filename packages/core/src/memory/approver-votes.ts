import { ToolgateError } from '@toolgate/values'
import { peopleOf } from '../policy/approver.ts'
import type { Approval, ApprovalVerdict, ApprovalVote, ApproverPlaces, ApproverRule } from '../ports/ports.ts'

type VotedApproval = Pick<Approval, 'approver' | 'approvedBy'>

/** Returns whether an approval needs more than one person whom `mayApprove` allows. */
export function needsVotes(rule: ApproverRule | undefined): boolean {
  return peopleOf(rule) > 1 || rule?.roles !== undefined
}

/**
 * Returns who has approved after a yes, and whether it is enough. `undefined` for an approval that any approver gives alone.
 *
 * @throws {ToolgateError} `approval_decided` for a second yes of one person, `approval_forbidden` for a person who does not
 * count
 */
export function addVote(
  { approver, approvedBy = [] }: VotedApproval,
  verdict: ApprovalVerdict,
): { readonly approvedBy: readonly ApprovalVote[]; readonly isEnough: boolean } | undefined {
  if (!needsVotes(approver)) return undefined
  const { by, atMs, reason, behind, fills } = verdict
  if (!counts(approver, fills))
    throw new ToolgateError('approval_forbidden', `${rolesText(approver)} may approve this call.`)
  const before = approvedBy.find((vote) => isSamePerson(vote, verdict))
  if (before)
    throw new ToolgateError(
      'approval_decided',
      `You have approved this call${before.by === by ? '' : ` as "${before.by}"`}. Another person must approve it, too.`,
    )
  const vote = {
    by,
    atMs,
    ...(reason !== undefined && { reason }),
    ...(behind !== undefined && behind.length > 0 && { behind }),
    ...(fills && { fills }),
  }
  const votes = [...approvedBy, vote]
  return { approvedBy: votes, isEnough: areEnough(approver, votes) }
}

/** Returns an approval without the yes of a person. @throws {ToolgateError} `approval_not_revocable` if they gave none */
export function takeBackVote<T extends VotedApproval & Pick<Approval, 'id' | 'edit'>>(
  approval: T,
  verdict: ApprovalVerdict,
): T {
  const { approvedBy = [], ...rest } = approval
  const left = approvedBy.filter((vote) => !isSamePerson(vote, verdict))
  if (left.length === approvedBy.length)
    throw new ToolgateError(
      'approval_not_revocable',
      `The approval "${approval.id}" waits for more people. Only who has approved it can take that back; anyone who may decide can reject it.`,
    )
  if (left.length > 0) return Object.freeze({ ...approval, approvedBy: left })
  // A change ends with the last yes to it.
  const { edit: _edit, ...unchanged } = rest
  return Object.freeze(unchanged as unknown as T)
}

/** Returns whether a person has given their yes, under any of their names. */
export function hasApproved({ approvedBy = [] }: VotedApproval, person: Pick<ApprovalVote, 'by' | 'behind'>): boolean {
  return approvedBy.some((vote) => isSamePerson(vote, person))
}

function isSamePerson(a: Pick<ApprovalVote, 'by' | 'behind'>, b: Pick<ApprovalVerdict, 'by' | 'behind'>): boolean {
  const names = new Set([a.by, ...(a.behind ?? [])])
  return [b.by, ...(b.behind ?? [])].some((name) => names.has(name))
}

function counts(rule: ApproverRule | undefined, fills: ApproverPlaces | undefined): boolean {
  const { roles, count } = rule ?? {}
  if (roles === undefined || (count !== undefined && isPlain(fills))) return true
  return fills?.roles.some((role) => Object.hasOwn(roles, role)) === true
}

function isPlain(fills: ApproverPlaces | undefined): boolean {
  return fills?.isPlain !== false
}

function rolesText(rule: ApproverRule | undefined): string {
  return `Only people with the role ${Object.keys(rule?.roles ?? {}).join(' or ')}`
}

/** Returns whether the people who approved are enough. One person counts for one role. */
function areEnough(rule: ApproverRule | undefined, votes: readonly ApprovalVote[]): boolean {
  const plain = votes.filter(({ fills }) => isPlain(fills))
  const count = rule?.count ?? (rule?.roles ? 0 : 1)
  return plain.length >= count && missingRoles(rule, votes).length === 0
}

/** Returns the roles for which somebody is still missing, once for each person. */
export function missingRoles(rule: ApproverRule | undefined, votes: readonly ApprovalVote[]): readonly string[] {
  const places = Object.entries(rule?.roles ?? {}).flatMap(([role, count]) => Array<string>(count).fill(role))
  const takenBy = new Map<number, ApprovalVote>()
  // Augmenting paths: a person moves to another of their roles where that makes room.
  const seat = (vote: ApprovalVote, tried: Set<number>): boolean =>
    places.some((role, at) => {
      if (tried.has(at) || vote.fills?.roles.includes(role) !== true) return false
      tried.add(at)
      const sitting = takenBy.get(at)
      if (sitting && !seat(sitting, tried)) return false
      takenBy.set(at, vote)
      return true
    })
  for (const vote of votes) seat(vote, new Set())
  return places.filter((_, at) => !takenBy.has(at))
}
