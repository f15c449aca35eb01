import type { Approval, ApprovalRow } from './wire.ts'

/** The state of a request on the page. `gone`: it no longer waits, and the page does not know why. */
export type CardState = Approval['status'] | 'gone'

export interface Card<Row extends Approval = ApprovalRow> {
  readonly approval: Row
  readonly state: CardState
}

export interface QueueInput<Row extends Approval> {
  /** The requests on the page, in their order. */
  readonly shown: readonly Row[]
  /** The requests that wait, as the gateway lists them. */
  readonly pending: readonly Row[]
  /** The known decisions, by approval id. */
  readonly ended: ReadonlyMap<string, Approval>
  readonly nowMs: number
}

export interface Queue<Row extends Approval> {
  readonly cards: readonly Card<Row>[]
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
export function toQueue<Row extends Approval>({ shown, pending, ended, nowMs }: QueueInput<Row>): Queue<Row> {
  const waiting = new Map(pending.map((approval) => [approval.id, approval]))
  const onPage = new Set(shown.map(({ id }) => id))
  return {
    cards: shown.map((approval) => toCard(approval, waiting, ended, nowMs)),
    fresh: oldestFirst(pending.filter(({ id, expiresAt }) => !onPage.has(id) && !ended.has(id) && expiresAt > nowMs)),
  }
}

/** A known decision takes precedence over the list, which may be older than the decision. */
function toCard<Row extends Approval>(
  approval: Row,
  waiting: ReadonlyMap<string, Row>,
  ended: ReadonlyMap<string, Approval>,
  nowMs: number,
): Card<Row> {
  const decision = ended.get(approval.id)
  if (decision) return { approval: { ...approval, ...decision }, state: decision.status }
  if (approval.expiresAt <= nowMs) return { approval, state: 'expired' }
  const latest = waiting.get(approval.id)
  return latest ? { approval: latest, state: 'pending' } : { approval, state: 'gone' }
}
