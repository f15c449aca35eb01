import type { AuditCounts, AuditOutcome } from '@toolgate/core/audit'
import { AUDIT_OUTCOMES } from '@toolgate/core/words'
import { Latencies } from './latency.ts'
import { serverOf } from '../../model/server-of.ts'

type BucketCounts = AuditCounts['buckets'][number]

/** The counts for a tool, a server, or everything. */
export interface Counted {
  readonly outcomes: Record<AuditOutcome, number>
  readonly latencies: Latencies
}

export interface Denial {
  readonly tenant: string | undefined
  readonly tool: string | undefined
  readonly user: string | undefined
  readonly reason: string | undefined
  count: number
}

/** The counts of a period. The next record changes them. */
export interface OverviewFigures {
  readonly since: number
  readonly bucketMs: number
  readonly buckets: readonly BucketCounts[]
  readonly all: Counted
  /** The counts by the namespace of the tools. */
  readonly servers: ReadonlyMap<string, Counted>
  /** The counts by tool. The key `undefined` has the sum of the tools without counts of their own. */
  readonly tools: ReadonlyMap<string | undefined, Counted>
  /** Refusals, the most frequent first. */
  readonly denials: readonly Readonly<Denial>[]
}

interface Times {
  readonly since: number
  readonly bucketMs: number
  readonly count: number
}

/**
 * Adds up the counts in buckets for one tenant, or for all if `undefined`. Counts outside of its period are ignored.
 */
export class Sum {
  readonly times: Times
  readonly #tenant: string | undefined
  readonly #buckets: readonly Record<AuditOutcome, number>[]
  readonly #all = noneCounted()
  readonly #servers = new Map<string, Counted>()
  readonly #tools = new Map<string | undefined, Counted>()
  readonly #denials = new Map<string, Denial>()

  constructor(times: Times, tenant: string | undefined) {
    this.times = times
    this.#tenant = tenant
    this.#buckets = Array.from({ length: times.count }, noOutcomes)
  }

  add(start: number, { tenant, tool }: Pick<Denial, 'tenant' | 'tool'>, more: Counted): void {
    const outcomes = this.#bucketOf(start, tenant)
    if (!outcomes) return
    addOutcomes(outcomes, more.outcomes)
    addCounted(this.#all, more)
    addCounted(countedOf(this.#tools, tool), more)
    if (tool !== undefined) addCounted(countedOf(this.#servers, serverOf(tool)), more)
  }

  /** Adds `more` to the count of a refusal. */
  addDenial(start: number, { tenant, tool, user, reason }: Readonly<Denial>, more: number): void {
    if (!this.#bucketOf(start, tenant)) return
    const key = keyOf(tenant, tool, user, reason)
    const known = this.#denials.get(key)
    if (known) known.count += more
    else this.#denials.set(key, { tenant, tool, user, reason, count: more })
  }

  read(): OverviewFigures {
    const { since, bucketMs } = this.times
    return {
      since,
      bucketMs,
      buckets: this.#buckets.map((bucket) => ({ ...bucket })),
      all: this.#all,
      servers: this.#servers,
      tools: this.#tools,
      denials: [...this.#denials.values()].toSorted((a, b) => b.count - a.count),
    }
  }

  #bucketOf(start: number, tenant: string | undefined): Record<AuditOutcome, number> | undefined {
    if (this.#tenant !== undefined && tenant !== this.#tenant) return undefined
    return this.#buckets[(start - this.times.since) / this.times.bucketMs]
  }
}

function countedOf<Key>(of: Map<Key, Counted>, key: Key): Counted {
  const known = of.get(key)
  if (known) return known
  const counted = noneCounted()
  of.set(key, counted)
  return counted
}

export function noneCounted(): Counted {
  return { outcomes: noOutcomes(), latencies: new Latencies() }
}

export function addCounted(to: Counted, more: Counted): void {
  addOutcomes(to.outcomes, more.outcomes)
  to.latencies.merge(more.latencies)
}

/** Returns a key that distinguishes an absent part from an empty one. */
export function keyOf(...parts: readonly (string | undefined)[]): string {
  return parts.map((part) => (part === undefined ? '' : `=${part}`)).join('\0')
}

function noOutcomes(): Record<AuditOutcome, number> {
  return { done: 0, failed: 0, refused: 0, limited: 0, waiting: 0, input_required: 0, abandoned: 0 }
}

function addOutcomes(to: Record<AuditOutcome, number>, more: BucketCounts): void {
  for (const outcome of AUDIT_OUTCOMES) to[outcome] += more[outcome]
}
