import type { Approval, ApprovalRow } from './wire.ts'

/**
 * The state of a request on the page. `held`: rejected by this person, who can still undo it. `gone`: it no longer waits,
 * and the page does not know why.
 */
export type CardState = Approval['status'] | 'held' | 'gone'

export interface Card<Row extends Approval = ApprovalRow> {
  readonly approval: Row
  readonly state: CardState
}

/** Equal requests, oldest first: the same input of the same tool in one tenant, and why it is asked for. */
export type Batch<Row extends Approval = ApprovalRow> = readonly Row[]

interface QueueInput<Row extends Approval> {
  /** The requests on the page, in their order. */
  readonly shown: readonly Batch<Row>[]
  /** The requests that wait, as the gateway lists them. */
  readonly pending: readonly Row[]
  /** The known decisions, by approval id. */
  readonly ended: ReadonlyMap<string, Approval>
  /** The ids of rejections that are not sent yet. */
  readonly held?: ReadonlySet<string>
  readonly nowMs: number
}

interface Queue<Row extends Approval> {
  /** For each batch on the page, the cards of its requests. */
  readonly groups: readonly (readonly Card<Row>[])[]
  /** Requests that wait and are not on the page yet, oldest first. */
  readonly fresh: readonly Row[]
}

/** Sorts requests by when they were made, oldest first, so that a later one never goes above an earlier one. */
export function oldestFirst<Row extends Approval>(approvals: readonly Row[]): readonly Row[] {
  return approvals.toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1))
}

/**
 * Returns the cards of the page and the requests that are not on it yet.
 *
 * The cards are exactly those in `shown`, in that order. A card never moves because another request arrives or ends.
 */
export function toQueue<Row extends Approval>(input: QueueInput<Row>): Queue<Row> {
  const { shown, pending, ended, nowMs } = input
  const waiting = new Map(pending.map((approval) => [approval.id, approval]))
  const onPage = new Set(shown.flat().map(({ id }) => id))
  return {
    groups: shown.map((batch) => batch.map((approval) => toCard(approval, waiting, input))),
    fresh: oldestFirst(pending.filter(({ id, expiresAt }) => !onPage.has(id) && !ended.has(id) && expiresAt > nowMs)),
  }
}

/** A known decision takes precedence over the list, which may be older than the decision. */
function toCard<Row extends Approval>(
  approval: Row,
  waiting: ReadonlyMap<string, Row>,
  { ended, held, nowMs }: QueueInput<Row>,
): Card<Row> {
  const decision = ended.get(approval.id)
  if (decision) return { approval: { ...approval, ...decision }, state: decision.status }
  if (approval.expiresAt <= nowMs) return { approval, state: 'expired' }
  const latest = waiting.get(approval.id)
  if (!latest) return { approval, state: 'gone' }
  return { approval: latest, state: held?.has(latest.id) ? 'held' : 'pending' }
}

/**
 * Returns the batches with new requests: each goes to the batch of its equals if one of them still waits, else to a new
 * one at the end.
 */
export function addFresh<Row extends Approval>(
  groups: readonly (readonly Card<Row>[])[],
  fresh: readonly Row[],
): readonly Batch<Row>[] {
  const batches = groups.map((cards) => cards.map(({ approval }) => approval))
  const open = new Map<string, Row[]>()
  for (const [i, cards] of groups.entries()) {
    const [first] = cards
    const batch = batches[i]
    if (first && batch && cards.some(({ state }) => state === 'pending')) open.set(keyOf(first.approval), batch)
  }
  for (const approval of fresh) {
    const key = keyOf(approval)
    const batch = open.get(key)
    if (batch) {
      batch.push(approval)
      continue
    }
    const own = [approval]
    open.set(key, own)
    batches.push(own)
  }
  return batches
}

/** By the hash of the input, as a redacted input may look like another; and by what the runs have read, as that may differ. */
function keyOf({ tenant, tool, definitionHash, inputHash, why, approver, asked, trail }: Approval): string {
  const read = trail?.read.map(({ label }) => label).toSorted()
  const sends = trail?.sends.map(({ field, origin }) => [field, origin])
  return JSON.stringify(
    [tenant, tool, definitionHash, inputHash, why, approver, asked, trail?.isUnknown, read, sends].map(
      (part) => part ?? null,
    ),
  )
}

export const APPROVAL_FILTERS = ['tool', 'user', 'run', 'tenant'] as const
export type ApprovalFilters = Readonly<Record<(typeof APPROVAL_FILTERS)[number], string>>

/** Returns whether a request matches all filters that are not empty. */
export function matchesFilters(approval: Approval, filters: ApprovalFilters): boolean {
  return APPROVAL_FILTERS.every((name) => filters[name] === '' || filters[name] === approval[name])
}

/** Returns the values by which requests can be filtered, sorted. */
export function valuesOf(approvals: readonly Approval[], name: (typeof APPROVAL_FILTERS)[number]): readonly string[] {
  return [...new Set(approvals.flatMap((one) => one[name] ?? []))].toSorted()
}
