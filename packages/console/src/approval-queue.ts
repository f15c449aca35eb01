import type { Approval, ApprovalRow } from './wire.ts'

/**
 * The state of a request on the page. `held`: this person rejected it, and can still undo that. `gone`: it no longer
 * waits, for an unknown reason.
 */
export type CardState = Approval['status'] | 'held' | 'gone'

export interface Card<Row extends Approval = ApprovalRow> {
  readonly approval: Row
  readonly state: CardState
}

/** Equal requests, oldest first: they have the same tenant, tool and input, and the same reason. */
export type Batch<Row extends Approval = ApprovalRow> = readonly Row[]

interface QueueInput<Row extends Approval> {
  /** The requests on the page, in order. */
  readonly shown: readonly Batch<Row>[]
  /** The waiting requests, as the gateway lists them. */
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
  /** Waiting requests that are not on the page yet, oldest first. */
  readonly fresh: readonly Row[]
}

/** Sorts requests by creation time, oldest first, so that a new request never appears above an older one. */
export function oldestFirst<Row extends Approval>(approvals: readonly Row[]): readonly Row[] {
  return approvals.toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1))
}

/**
 * Returns the page's cards, and the requests that are not on the page yet.
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
 * Returns the batches with the new requests added. A request joins the batch of equal requests if one of them still
 * waits, else it gets a new batch at the end.
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

/**
 * Returns the key of equal requests. It has the hash of the input, because different inputs may look equal after
 * redaction, and the labels of the run, because they may differ.
 */
function keyOf({ tenant, tool, definitionHash, inputHash, why, approver, asked, trail, edit }: Approval): string {
  const read = trail?.read.map(({ label }) => label).toSorted()
  const sends = trail?.sends.map(({ field, origin }) => [field, origin])
  return JSON.stringify(
    [tenant, tool, definitionHash, inputHash, why, approver, asked, trail?.isUnknown, read, sends, edit?.input].map(
      (part) => part ?? null,
    ),
  )
}

const APPROVAL_FIELDS = ['tool', 'user', 'run', 'tenant'] as const
export const APPROVAL_FILTERS = [...APPROVAL_FIELDS, 'text'] as const
export type ApprovalFilters = Readonly<Record<(typeof APPROVAL_FILTERS)[number], string>>

/** Returns whether a request matches all filters that are not empty. */
export function matchesFilters(approval: Approval, filters: ApprovalFilters): boolean {
  const { tool, user = '', why = '' } = approval
  const words = filters.text.toLowerCase()
  return (
    APPROVAL_FIELDS.every((name) => filters[name] === '' || filters[name] === approval[name]) &&
    [tool, user, why].some((part) => part.toLowerCase().includes(words))
  )
}
