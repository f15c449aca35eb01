import { createHash } from 'node:crypto'
import type { Approval } from '@toolgate/core'
import { peopleOf } from '@toolgate/core/call'
import { callerAt, toResource } from '../../auth/credential.ts'
import { approvalUrl } from '../../calls/approval-doors.ts'
import type { ReceiverConfig } from '../../config/config.ts'
import { redactApprovals } from '../../config/redaction.ts'
import type { Heart } from '../../heart/heart.ts'
import type { ReceiverRow, ReceiverTestRow } from '../../model/notifications.ts'
import { type Family, gauge } from '../../telemetry/exposition.ts'
import { endsWithin } from '@toolgate/values'
import { WorkLeases } from '../../util/leases.ts'
import { deliver } from './deliver.ts'
import type { ApprovalMessage } from './message.ts'
import { Outbox, type Queued, type ReceiverState } from './outbox.ts'
import { type SendOutcome, OUTCOMES, type Receiver, sendDue, type SenderDeps } from './sender.ts'
import { messagesOf, whyOf } from './words.ts'

/** How often queued messages are looked for. Those of this process leave at once. */
const EVERY_MS = 1_000
/** How often approvals and messages are compared: an approval may expire, or its process may have ended. */
const COMPARE_MS = 10_000
const LEASE_MS = 20_000
const MAX_COMPARED = 1_000
const MAX_SEEN = 10_000
/** How long a stopping gateway waits for a message on its way. Another process sends it again. */
const STOP_MS = 2_000
/** The time limit of a test message, whose answer a person waits for. */
const TEST_MS = 8_000
/** The least time between two log lines about a full queue. */
const LOG_MS = 60_000

/** Tells receivers that calls wait for a person, and how that ended. */
export class Notifications {
  readonly #heart: Heart
  readonly #outbox: Outbox
  readonly #leases: WorkLeases
  readonly #approvals: Heart['gate']['approvals']
  readonly #messages: () => readonly string[]
  readonly #unsubscribe: () => void
  readonly #timer: NodeJS.Timeout
  readonly #sending = new Map<string, Promise<void>>()
  /** Approvals whose requests were queued. Oldest first. */
  readonly #seen = new Set<string>()
  readonly #counts = new Map<string, number>()
  #receivers: readonly Receiver[] = []
  #states: ReadonlyMap<string, ReceiverState> = new Map()
  #queued: ReadonlyMap<string, number> = new Map()
  #looking: Promise<void> | undefined
  #comparedMs = Number.NEGATIVE_INFINITY
  /** When the first approval expires whose end is to be sent. Wall-clock milliseconds. */
  #expiresMs = Number.POSITIVE_INFINITY
  #full: { readonly atMs: number; readonly count: number } = { atMs: Number.NEGATIVE_INFINITY, count: 0 }
  #isClosed = false

  constructor(heart: Heart) {
    const { gate, stores, clock, redact, revisions } = heart
    this.#heart = heart
    this.#outbox = new Outbox(stores.state, clock)
    this.#leases = new WorkLeases({
      state: stores.state,
      clock,
      prefix: 'gateway/notifications/leases/',
      leaseMs: LEASE_MS,
    })
    this.#approvals = redactApprovals(gate.approvals, redact)
    this.#messages = revisions.derive(messagesOf)
    this.renew()
    this.#unsubscribe = gate.subscribe((notice) => {
      if (notice.event === 'approval-requested') this.#catch(this.#onRequested(notice.approval))
      const hasEnded = notice.event === 'approval-decided' && notice.approval.status !== 'pending'
      if (hasEnded) this.#catch(this.#onEnded(notice.approval))
    })
    this.#timer = setInterval(() => void this.#look(), EVERY_MS).unref()
  }

  /** Uses the receivers of the current revision. */
  renew(): void {
    const { notify = [] } = this.#heart.revisions.current.asking
    this.#receivers = notify.map((config) => ({ key: keyOf(config), config }))
  }

  /** Sends one example to receivers now, and returns what they answered. It is not tried again. */
  async test(names: ReadonlySet<string> | undefined): Promise<readonly ReceiverTestRow[]> {
    const chosen = this.#receivers.filter(({ config }) => names?.has(config.name) ?? true)
    return Promise.all(
      chosen.map(async ({ key, config }) => {
        const atMs = this.#heart.clock.wallMs()
        const message = exampleOf(this.#heart.door.publicUrl, atMs)
        const { outcome, text } = await deliver(config, message, {
          id: `msg_test_${atMs}_${key}`,
          atMs,
          timeoutMs: TEST_MS,
        })
        const { name, format } = config
        return { name, format, isTaken: outcome === 'sent', text: this.#heart.redact.redactText(text) }
      }),
    )
  }

  /** The receivers, as of the last second. */
  rows(): readonly ReceiverRow[] {
    const toIso = (ms: number) => new Date(ms).toISOString()
    return this.#receivers.map(({ key, config }) => {
      const { name, format, for: tenants, input = false } = config
      const { failing, sentAtMs, notBeforeMs = 0 } = this.#states.get(key) ?? {}
      const sent = sentAtMs !== undefined && { sentAt: toIso(sentAtMs) }
      const problem = failing && { failing: { since: toIso(failing.sinceMs), why: failing.why } }
      const next = notBeforeMs > this.#heart.clock.wallMs() && { nextAt: toIso(notBeforeMs) }
      return {
        name,
        format,
        input,
        waiting: this.#queued.get(key) ?? 0,
        ...(tenants && { for: tenants }),
        ...sent,
        ...problem,
        ...next,
      }
    })
  }

  families(): readonly Family[] {
    const names = this.#receivers.map(({ config }) => config.name)
    const samples = names.flatMap((receiver) =>
      OUTCOMES.map((outcome) => ({
        labels: { receiver, outcome },
        value: this.#counts.get(`${outcome} ${receiver}`) ?? 0,
      })),
    )
    const waiting = [...this.#queued.values()].reduce((sum, count) => sum + count, 0)
    return [
      { name: 'toolgate_notifications_total', type: 'counter', help: 'Notifications about approvals.', samples },
      gauge('toolgate_notifications_waiting', 'Notifications that are not sent yet.', waiting),
    ]
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    this.#unsubscribe()
    await endsWithin(Promise.all([this.#looking, ...this.#sending.values()]), STOP_MS)
  }

  async #onRequested(approval: Approval): Promise<void> {
    const { id, tenant } = approval
    if (this.#seen.has(id)) return
    this.#seen.add(id)
    const [oldest] = this.#seen
    if (this.#seen.size > MAX_SEEN && oldest !== undefined) this.#seen.delete(oldest)
    const receivers = this.#receiversOf(tenant)
    if (receivers.length === 0) return
    try {
      for (const receiver of receivers) await this.#queue(receiver, 'requested', approval)
      // This is noted last, so that the request is queued again if this process ends before.
      await this.#outbox.open(approval)
    } catch (error) {
      this.#seen.delete(id)
      throw error
    }
    this.#expiresMs = Math.min(this.#expiresMs, approval.expiresAt)
  }

  async #onEnded(approval: Approval): Promise<void> {
    if (!(await this.#outbox.isOpen(approval.id))) return
    for (const receiver of this.#receiversOf(approval.tenant)) await this.#queue(receiver, 'ended', approval)
    await this.#outbox.close(approval.id)
  }

  async #queue(receiver: Receiver, about: Queued['about'], approval: Approval): Promise<void> {
    if (await this.#outbox.add(receiver.key, about, approval)) this.#send(receiver)
    else this.#onFull(receiver)
  }

  #onFull({ config }: Receiver): void {
    this.#count(config.name, 'dropped')
    const nowMs = this.#heart.clock.monotonicMs()
    const count = this.#full.count + 1
    if (nowMs - this.#full.atMs < LOG_MS) this.#full = { ...this.#full, count }
    else {
      this.#full = { atMs: nowMs, count: 0 }
      const message = `${count} notifications are not sent, as too many wait for the receiver "${config.name}"`
      this.#heart.log({ level: 'warn', message })
    }
  }

  #receiversOf(tenant: string | undefined): readonly Receiver[] {
    return this.#receivers.filter(({ config }) => !config.for || (tenant !== undefined && config.for.includes(tenant)))
  }

  /** Sends what is due to a receiver. It does not wait for others. */
  #send(receiver: Receiver): void {
    const { key } = receiver
    if (this.#isClosed || this.#sending.has(key)) return
    const sending = sendDue(receiver, this.#deps())
      .catch(this.#heart.onFault)
      .finally(() => this.#sending.delete(key))
    this.#sending.set(key, sending)
  }

  #deps(): SenderDeps {
    const { clock, door } = this.#heart
    return {
      outbox: this.#outbox,
      leases: this.#leases,
      clock,
      deliver,
      approvalOf: (id) => this.#approvalOf(id),
      toMessage: (approval, about, receiver) => this.#toMessage(approval, about, receiver),
      listUrl: door.publicUrl === undefined ? undefined : new URL('/#/approvals', door.publicUrl).href,
      onOutcome: (...given) => this.#onOutcome(...given),
      onState: (receiver, state) => this.#onState(receiver, state),
      isClosed: () => this.#isClosed,
    }
  }

  /** Returns an approval as it may leave: names come from clients and servers, and may hold a secret, too. */
  async #approvalOf(id: string): Promise<Approval | undefined> {
    const approval = await this.#approvals.get(id)
    if (!approval) return undefined
    const { redactText } = this.#heart.redact
    const { tool, user, tenant, decidedBy } = approval
    return {
      ...approval,
      tool: redactText(tool),
      user: user && redactText(user),
      tenant: tenant && redactText(tenant),
      ...(decidedBy !== undefined && { decidedBy: redactText(decidedBy) }),
    }
  }

  async #toMessage(
    approval: Approval,
    about: Queued['about'],
    { input: withInput = false }: ReceiverConfig,
  ): Promise<ApprovalMessage> {
    const { id, status, tool, user, tenant, requestedAt, expiresAt, decidedBy, reason, input } = approval
    const url = approvalUrl(id, this.#heart.door.publicUrl)
    const name = await this.#clientOf(id)
    const client = name && this.#heart.redact.redactText(name)
    const people = peopleOf(approval.approver)
    const approvers = people > 1 ? people : undefined
    const given = { user, tenant, client, url, approvers, decidedBy, reason }
    return {
      about,
      id,
      status,
      tool,
      ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
      why: this.#heart.redact.redactText(whyOf(approval, this.#messages())),
      requestedAt,
      expiresAt,
      ...(withInput && about === 'requested' ? { input } : {}),
    }
  }

  /** Returns the client that asks, if its credential is still known here. */
  async #clientOf(id: string): Promise<string | undefined> {
    const { authenticator, runs } = this.#heart.door
    // Only the host sees the asker.
    const { asker } = (await this.#heart.gate.approvals.get(id)) ?? {}
    if (!asker) return undefined
    if (!authenticator.current(asker.id)) await runs.load(asker.id)
    const caller = callerAt(authenticator.current(asker.id), toResource(asker.app))
    return caller?.client ?? caller?.agent
  }

  #look(): Promise<void> {
    return (this.#looking ??= this.#lookOnce()
      .catch(this.#heart.onFault)
      .finally(() => (this.#looking = undefined)))
  }

  async #lookOnce(): Promise<void> {
    const { clock } = this.#heart
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#comparedMs >= COMPARE_MS || clock.wallMs() >= this.#expiresMs) {
      this.#comparedMs = nowMs
      this.#expiresMs = Number.POSITIVE_INFINITY
      await this.#compare()
    }
    const queued = await this.#outbox.queued()
    this.#states = await this.#outbox.states()
    this.#queued = new Map([...queued].map(([key, list]) => [key, list.length]))
    for (const receiver of this.#receivers) if (queued.has(receiver.key)) this.#send(receiver)
  }

  /** Queues what no process has queued: the requests and ends of approvals whose process ended, and what expired. */
  async #compare(): Promise<void> {
    const { gate } = this.#heart
    if (!(await this.#leases.take('compare'))) return
    try {
      const opened = await this.#outbox.opened()
      const pending = await gate.approvals.list({ status: 'pending', limit: MAX_COMPARED })
      const waiting = new Set(pending.map(({ id }) => id))
      for (const approval of pending) if (!opened.has(approval.id)) await this.#onRequested(approval)
      for (const [id, expiresAt] of opened) {
        const approval = waiting.has(id) ? undefined : await gate.approvals.get(id)
        if (approval && approval.status !== 'pending') await this.#onEnded(approval)
        else if (!approval && !waiting.has(id)) await this.#outbox.close(id)
        else this.#expiresMs = Math.min(this.#expiresMs, expiresAt)
      }
    } finally {
      await this.#leases.release('compare')
    }
  }

  #onOutcome(
    { config }: Receiver,
    { approval, tool, tenant, about }: Queued,
    outcome: SendOutcome,
    text: string,
  ): void {
    this.#count(config.name, outcome)
    if (outcome !== 'sent' && outcome !== 'failed') return
    const { stores, clock, gate, redact } = this.#heart
    const detail = redact.redactText(`to ${config.name}: ${text}`)
    const entry = {
      event: outcome === 'sent' ? 'notification_sent' : 'notification_failed',
      approval_id: approval,
      tool,
      tenant,
      reason: about,
      detail,
      wallMs: clock.wallMs(),
      policy_revision: gate.policyRevision,
      catalog_revision: gate.catalog.revision,
    } as const
    this.#catch((async () => stores.audit.write(entry))())
  }

  #onState({ key, config }: Receiver, state: ReceiverState): void {
    const before = this.#states.get(key)
    this.#states = new Map([...this.#states, [key, state]])
    const { log } = this.#heart
    const { failing } = state
    if (failing && !before?.failing)
      log({ level: 'warn', message: `the receiver "${config.name}" takes no notifications`, detail: failing.why })
    if (!failing && before?.failing)
      log({ level: 'info', message: `the receiver "${config.name}" takes notifications again` })
  }

  #count(receiver: string, outcome: SendOutcome): void {
    const key = `${outcome} ${receiver}`
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
  }

  #catch(work: Promise<unknown>): void {
    work.catch(this.#heart.onFault)
  }
}

/** Returns the key of a receiver, which does not change with its name or place in the file. */
function keyOf({ url }: ReceiverConfig): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 16)
}

const EXAMPLE_MS = 600_000

function exampleOf(publicUrl: string | undefined, nowMs: number): ApprovalMessage {
  return {
    about: 'test',
    id: 'test',
    status: 'pending',
    tool: 'example:tool',
    user: 'example',
    why: 'This message shows that Toolgate can reach this place.',
    requestedAt: nowMs,
    expiresAt: nowMs + EXAMPLE_MS,
    ...(publicUrl === undefined ? {} : { url: publicUrl }),
  }
}
