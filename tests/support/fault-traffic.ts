import { setTimeout as sleep } from 'node:timers/promises'
import type { Evidence } from './fault-judge.ts'
import { pick, type Random, shuffle } from './random.ts'
import type { Replica, ReplicaSet } from './replica-set.ts'

/** What the traffic knows of its calls. */
export type Told = Pick<Evidence, 'acknowledged' | 'approved' | 'halted'>

export interface TrafficOptions {
  readonly clients: number
  /** Tools with a limit, which are used up one after the other. */
  readonly limited: readonly string[]
  readonly random: Random
}

const PAUSE_MS = 5
const HALT_MS = 300

/** Calls with a limit, without one, with an approval and of a halted tool, at random replicas, from several clients at once. */
export function startTraffic(set: ReplicaSet, options: TrafficOptions) {
  const traffic = new Traffic(set, options)
  const stopping = new AbortController()
  const repeat = async (work: () => Promise<void>) => {
    while (!stopping.signal.aborted) {
      await work()
      await sleep(PAUSE_MS)
    }
  }
  const loops = [
    ...Array.from({ length: options.clients }, () => repeat(() => traffic.callOne())),
    repeat(() => traffic.haltForAWhile()),
  ]
  return {
    /** How many calls were acknowledged so far. */
    count: () => traffic.acknowledged.length,
    /** Resolves when the last call was answered. */
    async stop(): Promise<Told> {
      stopping.abort()
      await Promise.all(loops)
      return traffic
    },
  }
}

class Traffic implements Told {
  readonly acknowledged: number[] = []
  readonly approved = new Map<number, number>()
  readonly halted: number[] = []
  readonly #set: ReplicaSet
  readonly #limited: string[]
  readonly #random: Random
  #last = 0
  /** Grows with each halt that was answered, and with each release that is asked for. Odd while one is in force. */
  #halts = 0

  constructor(set: ReplicaSet, { limited, random }: TrafficOptions) {
    this.#set = set
    this.#limited = [...limited]
    this.#random = random
  }

  async callOne(): Promise<void> {
    const kind = pick(['note', 'limited', 'pay', 'halted'] as const, this.#random())
    const n = ++this.#last
    if (kind === 'pay') return this.#pay(n)
    if (kind === 'halted') return this.#callHalted(n)
    const tool = kind === 'limited' ? this.#limited[0] : kind
    if (tool === undefined) return
    const answer = await this.#call(tool, n)
    if (ran(answer)) this.acknowledged.push(n)
    if (/rate limited/.test(answer) && tool === this.#limited[0] && this.#limited.length > 1) this.#limited.shift()
  }

  /** Halts a tool, and releases it a little later. */
  async haltForAWhile(): Promise<void> {
    const body = { tool: 'work:halted', reason: 'a leak' }
    const answer = await this.#api('/api/halts', 'POST', body)
    if (answer?.status === 200) {
      this.#halts++
      await Promise.all(this.#set.replicas.map((replica) => this.#callHalted(++this.#last, replica)))
      await sleep(this.#random() * HALT_MS)
      this.#halts++
    }
    // A halt whose answer never came may be in force, and one whose release failed is.
    const kept = (await this.#api('/api/halts'))?.body as { halts?: readonly { id: string }[] } | undefined
    for (const { id } of kept?.halts ?? []) await this.#api(`/api/halts/${id}`, 'DELETE')
    await sleep(this.#random() * HALT_MS)
  }

  async #callHalted(n: number, at?: Replica): Promise<void> {
    const halts = this.#halts
    const answer = await (at ? this.#set.call(at.url, 'halted', n) : this.#call('halted', n))
    if (ran(answer)) this.acknowledged.push(n)
    if (halts % 2 === 1 && halts === this.#halts) this.halted.push(n)
  }

  /** Asks for an approval, gives it once, and tries to spend it at several replicas at once. */
  async #pay(n: number): Promise<void> {
    await this.#call('pay', n)
    const pending = await this.#api('/api/approvals?status=pending')
    const rows = (pending?.body as { approvals?: readonly { id: string }[] } | undefined)?.approvals
    const own = rows?.find((row) => JSON.stringify(row).replaceAll('\\', '').includes(`"n":${n}}`))
    if (own === undefined) return
    // Before it is sent: an answer that never came may have approved it.
    this.approved.set(n, 1)
    await this.#api(`/api/approvals/${own.id}`, 'POST', { decision: 'approve' })
    const answers = await Promise.all([1, 2, 3].map(() => this.#call('pay', n)))
    if (answers.some(ran)) this.acknowledged.push(n)
  }

  /** Calls a tool as through a load balancer: at another replica where nothing listens. */
  async #call(tool: string, n: number): Promise<string> {
    let answer = ''
    for (const { url } of shuffle(this.#set.replicas, this.#random)) {
      answer = await this.#set.call(url, tool, n)
      if (!/ECONNREFUSED|"starting"/.test(answer)) break
    }
    return answer
  }

  #api(...args: [path: string, method?: string, body?: object]) {
    return this.#set.api(this.#replica(), ...args).catch(() => undefined)
  }

  #replica(): Replica {
    return pick(this.#set.replicas, this.#random())
  }
}

function ran(answer: string): boolean {
  return answer.endsWith(' ran')
}
