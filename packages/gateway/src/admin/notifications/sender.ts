import type { Approval } from '@toolgate/core'
import type { Clock } from '@toolgate/core/stores'
import type { ReceiverConfig } from '../../config/config.ts'
import type { WorkLeases } from '../../util/leases.ts'
import type { deliver, Delivery } from './deliver.ts'
import type { ApprovalMessage, GroupMessage, NoticeMessage } from './message.ts'
import type { Outbox, Queued, ReceiverState } from './outbox.ts'

/** A receiver with the key of its entries in the state, which hides its URL. */
export interface Receiver {
  readonly key: string
  readonly config: ReceiverConfig
}

/**
 * What became of a message, for the audit, the log and the metrics. `dropped`: the queue was full. `unneeded`: the call
 * no longer waited before the message left.
 */
export const OUTCOMES = ['sent', 'retried', 'failed', 'dropped', 'unneeded'] as const
export type SendOutcome = (typeof OUTCOMES)[number]

export interface SenderDeps {
  readonly outbox: Outbox
  readonly leases: WorkLeases
  readonly clock: Pick<Clock, 'wallMs'>
  readonly deliver: typeof deliver
  /** Returns the approval as approvers see it. */
  readonly approvalOf: (id: string) => Promise<Approval | undefined>
  readonly toMessage: (approval: Approval, about: Queued['about'], receiver: ReceiverConfig) => Promise<ApprovalMessage>
  /** The page that lists what waits. */
  readonly listUrl: string | undefined
  readonly onOutcome: (receiver: Receiver, queued: Queued, outcome: SendOutcome, text: string) => void
  /** Called when a receiver begins to fail, and when it takes messages again. */
  readonly onState: (receiver: Receiver, state: ReceiverState) => void
  readonly isClosed: () => boolean
}

/** The most messages to a chat in a minute. The last of them is about all that wait. */
const MAX_A_MINUTE = 10
const MINUTE_MS = 60_000
const FIRST_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 5 * 60_000
/** How long a receiver whose URL leads nowhere is left alone, and the longest wait that a receiver may ask for. */
const GONE_MS = 10 * 60_000
const MAX_SHOWN_TOOLS = 5

interface Ready {
  readonly queued: Queued
  readonly approval: Approval
}

/**
 * Sends what is due to a receiver, one message at a time. One process does so at a time: it holds the receiver's lease. A
 * process that ends before it has noted a message hands it over, and then the message leaves again with the same id.
 */
export async function sendDue(receiver: Receiver, deps: SenderDeps): Promise<void> {
  const { leases, outbox, clock, isClosed } = deps
  if (!(await leases.take(receiver.key))) return
  try {
    for (;;) {
      const state = await outbox.stateOf(receiver.key)
      if (isClosed() || isPaused(state, clock.wallMs())) return
      const room = roomOf(receiver, state, clock.wallMs())
      // The last message of a minute is about all that wait.
      const together = room === 0 ? [] : await findReady(receiver, room === 1 ? Number.POSITIVE_INFINITY : 1, deps)
      if (together.length === 0 || !(await leases.renew(receiver.key))) return
      await sendOne(receiver, together, state, deps)
    }
  } finally {
    await leases.release(receiver.key)
  }
}

/** Whether a receiver is left alone. No pause is longer than the longest one, even if the clock was set back. */
function isPaused({ notBeforeMs }: ReceiverState, nowMs: number): boolean {
  return notBeforeMs > nowMs && notBeforeMs <= nowMs + GONE_MS
}

/** Returns how many messages may leave now. */
function roomOf({ config }: Receiver, { window }: ReceiverState, nowMs: number): number {
  if (config.format === 'json') return Number.POSITIVE_INFINITY
  return isOver(window, nowMs) ? MAX_A_MINUTE : Math.max(0, MAX_A_MINUTE - window.count)
}

/** Whether the minute of a window is over. One that begins in the future is, as the clock was set back. */
function isOver({ atMs }: ReceiverState['window'], nowMs: number): boolean {
  return nowMs - atMs >= MINUTE_MS || nowMs < atMs
}

/**
 * Returns the first messages that still make sense. Removes those that do not. A message that failed comes after the
 * others, so it does not hold them up.
 */
async function findReady(receiver: Receiver, max: number, deps: SenderDeps): Promise<readonly Ready[]> {
  const { outbox } = deps
  const ready: Ready[] = []
  const queue = await outbox.queueOf(receiver.key)
  for (const queued of queue.toSorted((a, b) => a.tries - b.tries)) {
    const approval = await deps.approvalOf(queued.approval)
    const why = await findObsolete(receiver, queued, approval, deps)
    if (why === undefined && approval) ready.push({ queued, approval })
    else {
      await outbox.remove(queued)
      deps.onOutcome(receiver, queued, why ? 'failed' : 'unneeded', why ?? '')
    }
    if (ready.length >= max) break
  }
  return ready
}

/** Returns why a message is not sent any more: a text if somebody may miss it, and '' otherwise. */
async function findObsolete(
  { key }: Receiver,
  { about, untilMs, tries, approval: id }: Queued,
  approval: Approval | undefined,
  { outbox, clock }: SenderDeps,
): Promise<string | undefined> {
  const told = await outbox.told(key, id)
  const isKnown = about === 'requested' ? told !== undefined : told !== 'alone'
  if (!approval || isKnown) return ''
  if (about === 'requested' && approval.status !== 'pending')
    return tries === 0 ? '' : `the call no longer waits: ${approval.status}`
  return clock.wallMs() >= untilMs ? 'it could not be sent in time' : undefined
}

async function sendOne(
  receiver: Receiver,
  together: readonly Ready[],
  state: ReceiverState,
  deps: SenderDeps,
): Promise<void> {
  const { clock } = deps
  const message = await toMessage(receiver, together, deps)
  const atMs = clock.wallMs()
  const id = idOf(receiver, together)
  const delivery = await deps.deliver(receiver.config, message, { id, atMs })
  // What was sent is noted first, so that only a process that ends just here sends it twice.
  for (const one of together) await note(receiver, one, delivery, { isAlone: together.length === 1, deps })
  const next = nextState(state, delivery, clock.wallMs())
  await deps.outbox.setState(receiver.key, next)
  deps.onState(receiver, next)
}

/** The id of a message. It stays the same when the message is sent again. */
function idOf({ key }: Receiver, together: readonly Ready[]): string {
  const [first, ...more] = together
  const { approval, about } = (first as Ready).queued
  return `msg_${approval}_${about}_${key}${more.length === 0 ? '' : `_${more.length}`}`
}

async function toMessage({ config }: Receiver, together: readonly Ready[], deps: SenderDeps): Promise<NoticeMessage> {
  const [first] = together
  if (first && together.length === 1) return deps.toMessage(first.approval, first.queued.about, config)
  const waiting = together.filter(({ queued }) => queued.about === 'requested')
  const counts = Map.groupBy(waiting, ({ approval }) => approval.tool)
  const tools = [...counts]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([tool, { length }]) => `${tool} (${length})`)
  const shown = tools.length > MAX_SHOWN_TOOLS ? [...tools.slice(0, MAX_SHOWN_TOOLS), 'and others'] : tools
  return {
    about: 'group',
    waiting: waiting.length,
    ended: together.length - waiting.length,
    tools: shown,
    ...(deps.listUrl === undefined ? {} : { url: deps.listUrl }),
  } satisfies GroupMessage
}

async function note(
  receiver: Receiver,
  { queued, approval }: Ready,
  { outcome, text }: Delivery,
  { isAlone, deps }: { readonly isAlone: boolean; readonly deps: SenderDeps },
): Promise<void> {
  const { outbox } = deps
  if (outcome === 'later') {
    await outbox.tryAgain(queued)
    return deps.onOutcome(receiver, queued, 'retried', text)
  }
  const told = queued.about === 'ended' ? 'ended' : isAlone && outcome === 'sent' ? 'alone' : 'in a group'
  await outbox.setTold(receiver.key, approval.id, told, approval.expiresAt)
  await outbox.remove(queued)
  deps.onOutcome(receiver, queued, outcome === 'sent' ? 'sent' : 'failed', text)
}

function nextState(state: ReceiverState, delivery: Delivery, nowMs: number): ReceiverState {
  const { count } = state.window
  const window = isOver(state.window, nowMs) ? { atMs: nowMs, count: 1 } : { ...state.window, count: count + 1 }
  if (delivery.outcome === 'sent') return { failures: 0, notBeforeMs: 0, sentAtMs: nowMs, window }
  const failures = state.failures + 1
  const { sinceMs } = state.failing ?? { sinceMs: nowMs }
  const pauseMs = pauseAfter(delivery, failures)
  return { ...state, failures, notBeforeMs: nowMs + pauseMs, failing: { sinceMs, why: delivery.text }, window }
}

function pauseAfter(delivery: Exclude<Delivery, { readonly outcome: 'sent' }>, failures: number): number {
  if (delivery.outcome === 'refused') return delivery.isGone ? GONE_MS : 0
  if (delivery.retryMs !== undefined) return Math.min(Math.max(delivery.retryMs, FIRST_PAUSE_MS), GONE_MS)
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 20), MAX_PAUSE_MS)
  // Replicas and receivers that failed together do not come back together.
  return pauseMs * (0.8 + Math.random() * 0.4)
}
