import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import type { Caller, Gate, View } from '@toolgate/core'
import { callerKey } from '@toolgate/core/internal'
import { sha256Hex } from '@toolgate/values'
import type { Runtime } from 'langchain'
import { createCallerOf, type GuardOptions, openView, wordsOf } from '../shared/guard-options.ts'
import { GuardedRun, type GuardedRunParts, RunRegistry } from '../shared/runs.ts'

/** The fields that LangChain passes a middleware about its run. `context` is the agent's own. */
// oxlint-disable-next-line typescript/no-explicit-any -- the agent's `contextSchema` types it, and a middleware stands outside of that
export type GuardRuntime = Runtime<any>

/** The part of a run that survives a pause. It is stored in the graph's state. */
export interface SavedRun {
  readonly run: string
  /**
   * Hashes of the tools that a resumed run may see. They are hashes because LangGraph's server returns the state to its
   * clients.
   */
  readonly ceiling: readonly string[]
}

/** One step of a model. */
export interface GivenStep {
  readonly view: View
  readonly number: number
  readonly model: string | undefined
}

/** One invocation of an agent. A resumed run is a new invocation. */
export class AgentRun extends GuardedRun {
  readonly #steps = new Map<string, GivenStep>()

  /** Returns the step of a call, if this invocation saw it. */
  stepOf(callId: string | undefined): GivenStep | undefined {
    return callId === undefined ? undefined : this.#steps.get(callId)
  }

  /** Records the step in which a model made these calls. */
  stepped(step: GivenStep, callIds: Iterable<string | undefined>): void {
    this.#steps.clear()
    for (const id of callIds) if (id !== undefined) this.#steps.set(id, step)
  }
}

/** The run that calls a tool. Agents that the tool starts see at most what that run sees. */
const within = new AsyncLocalStorage<{ readonly catalog: Gate['catalog']; readonly view: View }>()

/** Makes a call. Runs that its tool starts are narrowed to this run. */
export function callWithin<T>({ catalog }: Pick<Gate, 'catalog'>, view: View, call: () => T): T {
  return within.run({ catalog, view }, call)
}

interface RunsParts extends Pick<GuardedRunParts, 'names' | 'onCall'> {
  readonly gate: Gate
  readonly options: GuardOptions<string, GuardRuntime>
  /** Whether approvals are bound to one run. That run must then survive its pauses. */
  readonly binds: (runtime: GuardRuntime) => boolean
}

/** The runs of one guard: one for each invocation, run and caller. */
export class LangChainRuns {
  readonly #parts: RunsParts
  readonly #callerOf: ReturnType<typeof createCallerOf<GuardRuntime>>
  /** Runs by the writer that LangGraph creates for each invocation and passes to all its parts. */
  readonly #runs = new RunRegistry<AgentRun>()

  constructor(parts: RunsParts) {
    this.#parts = parts
    this.#callerOf = createCallerOf(parts.options.caller)
  }

  /** Begins a run, and returns the part to store. */
  async begin(runtime: GuardRuntime): Promise<SavedRun> {
    const { gate, options } = this.#parts
    const caller = await this.#callerOf(runtime)
    const view = await this.#openView(caller, undefined, runtime)
    const id = options.runId?.(runtime) ?? randomUUID()
    const saved = sealCeiling(id, ceilingOf(view, gate.catalog.snapshot().ids))
    await this.#runs.open(runtime.writer ?? {}, keyOf(caller, saved), async () => this.#toRun(view, id, runtime, false))
    return saved
  }

  /** Returns the run of a step or call. */
  async of(saved: SavedRun | undefined, runtime: GuardRuntime): Promise<AgentRun> {
    const caller = await this.#callerOf(runtime)
    return this.#runs.of(runtime.writer ?? {}, keyOf(caller, saved), async () =>
      this.#toRun(await this.#openView(caller, saved, runtime), saved?.run, runtime, saved !== undefined),
    )
  }

  #openView(caller: Caller, saved: SavedRun | undefined, runtime: GuardRuntime): Promise<View> {
    const { gate, options } = this.#parts
    const parent = within.getStore()
    const ofParent = parent?.catalog === gate.catalog ? parent.view : undefined
    const known = gate.catalog.snapshot().ids
    return openView(
      gate,
      caller,
      options,
      runtime,
      { visibility: saved && unsealCeiling(saved, known) },
      { visibility: ofParent && ceilingOf(ofParent, known) },
    )
  }

  #toRun(view: View, id: string | undefined, runtime: GuardRuntime, resumed: boolean): AgentRun {
    const { binds, options } = this.#parts
    const named = options.runId?.(runtime)
    const bindsApprovals = named !== undefined || (id !== undefined && binds(runtime))
    const words = wordsOf(options, runtime)
    return new AgentRun({ ...this.#parts, view, id: id ?? named, bindsApprovals, words, resumed })
  }
}

function keyOf(caller: Caller, saved: SavedRun | undefined): string {
  return JSON.stringify([saved?.run, callerKey(caller)])
}

/**
 * Returns the ids that a run may ever see: visible tools, and waiting ones, because a locked or unavailable tool may
 * open at a later step.
 */
function ceilingOf(view: View, known: readonly string[]): readonly string[] {
  return known.filter((id) => view.has(id) || view.explain(id).outcome === 'wait')
}

/** The stored upper bound of what a run sees. */
interface SealedRun {
  readonly run: string
  readonly ceiling: readonly string[]
}

/** Seals the ids that a run may see: each becomes a hash that differs from run to run. */
function sealCeiling(run: string, ids: readonly string[]): SealedRun {
  return { run, ceiling: ids.map((id) => sealOf(run, id)) }
}

/**
 * Returns the known ids that are in a sealed upper bound.
 *
 * Clients of LangGraph's server can write the state. A forged bound opens nothing that policy hides. An unreadable
 * bound is empty.
 */
function unsealCeiling({ run, ceiling }: Partial<SealedRun>, known: readonly string[]): readonly string[] {
  if (typeof run !== 'string' || !Array.isArray(ceiling)) return []
  const sealed = new Set<unknown>(ceiling)
  return known.filter((id) => sealed.has(sealOf(run, id)))
}

function sealOf(run: string, id: string): string {
  return sha256Hex(`${run}\n${id}`).slice(0, SEAL_LENGTH)
}

/** 128 bits, in hex digits. */
const SEAL_LENGTH = 32
