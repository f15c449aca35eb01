import { ConfigError } from '../errors.ts'
import { type MaybePromise, PROBE_KINDS, type ProbeKind } from '../ports.ts'
import { checkShape, isPlainObject, shapeOf } from '../util/shape.ts'

/** What a probe found. `false` alone says no more than that it does not work. */
export type ProbeAnswer =
  | boolean
  | {
      readonly available: boolean
      /** Why not, in a clause without a full stop. Callers are told it. */
      readonly reason?: string
      /** More about it, for people only. */
      readonly detail?: string
      /** What to do about it, as a sentence; the group's own comes first. */
      readonly suggestion?: string
    }

export interface ProbeAsking {
  /** Aborts at the deadline, and when nobody asks any more. */
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

/** Finds out whether something works. A throw and a late answer count as "it does not". */
export type ProbeFunction = (asking: ProbeAsking) => MaybePromise<ProbeAnswer>

/** A question that many groups may have in common. */
export interface Probe {
  /** Probes with equal keys are one, which is asked once for all groups that name it. */
  readonly key: string
  readonly ask: ProbeFunction
  /** What is asked, as a noun: `the address 127.0.0.1:4444`. Callers are told it. Default: its probe. */
  readonly what?: string
  /** What sort of thing is asked, for lists of needs. Default `function`. */
  readonly kind?: ProbeKind
  /** Default 1,000 ms. */
  readonly timeoutMs?: number
  /** It costs much, such as a process of its own: few of these are asked at once. */
  readonly isHeavy?: boolean
  /** For what knows by itself when its answer changed: it is asked then, and not by the time. */
  subscribe?(listener: () => void): () => void
}

const KINDS: ReadonlySet<unknown> = new Set(PROBE_KINDS)
const MAX_MS = 86_400_000
const PROBE = shapeOf<Probe>(
  { key: true, ask: true, what: true, kind: true, timeoutMs: true, isHeavy: true, subscribe: true },
  'field',
)

/** @throws {ConfigError} naming the place of what is no probe */
export function checkProbes(path: string, probes: unknown): readonly (Probe | ProbeFunction)[] {
  if (!Array.isArray(probes)) throw new ConfigError(path, 'must be a list of probes')
  for (const [i, probe] of probes.entries()) checkProbe(`${path}[${i}]`, probe)
  return probes as readonly (Probe | ProbeFunction)[]
}

function checkProbe(path: string, probe: unknown): void {
  if (typeof probe === 'function') return
  if (isPlainObject(probe)) checkShape(path, probe, PROBE)
  const { key, ask, kind, timeoutMs } = (probe ?? {}) as Partial<Probe>
  if (typeof key !== 'string' || key === '' || typeof ask !== 'function')
    throw new ConfigError(path, 'must be a function, or a probe with "key" and "ask"')
  if (kind !== undefined && !KINDS.has(kind))
    throw new ConfigError(`${path}.kind`, `must be one of ${PROBE_KINDS.join(', ')}, not ${JSON.stringify(kind)}`)
  if (timeoutMs !== undefined) checkMs(`${path}.timeoutMs`, timeoutMs)
}

/** @throws {ConfigError} for what is no number of milliseconds from 1 to a day */
export function checkMs(path: string, ms: number): number {
  if (Number.isFinite(ms) && ms >= 1 && ms <= MAX_MS) return ms
  throw new ConfigError(path, `${String(ms)} is not a number of milliseconds from 1 to ${MAX_MS}`)
}
