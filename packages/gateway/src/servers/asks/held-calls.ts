import { randomUUID } from 'node:crypto'
import type { CallContext, Caller, Progress } from '@toolgate/core'
import { type Canceller, type Cancelling, createCanceller } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import { InputRequired } from '@toolgate/core/toolset'
import { type McpResult, RPC_CODES, RpcError } from '@toolgate/mcp'
import type { Asked } from './asked.ts'
import { isAnswerTo } from './answers.ts'
import { StateInvalid } from './sealed-state.ts'

export interface HeldCallsOptions {
  /** How long a call waits for its client's answer. Default 5 minutes. */
  readonly ttlMs?: number
  /** The maximum number of waiting calls, in total and for one user. Default 256 and 16. */
  readonly max?: number
  readonly maxOfOne?: number
}

/** The owner of a held call. Only a call with equal fields resumes it. */
export interface HeldOwner {
  readonly caller: Caller
  readonly tool: string
  /** Distinguishes the requests that are sent to the server. */
  readonly key: string
}

/**
 * Running calls whose servers (of earlier revisions) wait for an answer. Their clients (of 2026-07-28) have received
 * `input_required` and have no open request. The retry resumes the call in the process that holds it.
 */
export class HeldCalls {
  readonly #options: Required<HeldCallsOptions>
  readonly #waiting = new Map<string, HeldCall>()

  constructor({ ttlMs = 5 * 60_000, max = 256, maxOfOne = 16 }: HeldCallsOptions = {}) {
    this.#options = { ttlMs, max, maxOfOne }
  }

  get count(): number {
    return this.#waiting.size
  }

  /** Starts a call that can be held. `run` sends it. */
  begin(owner: HeldOwner, run: (held: HeldCall) => Promise<McpResult | InputRequired>): HeldCall {
    return new HeldCall(this, owner, run)
  }

  /** Returns the waiting call with this id, which then no longer waits. @throws {RpcError} if there is none */
  resume(id: string, { caller, tool, key }: HeldOwner): HeldCall {
    const held = this.#waiting.get(id)
    const isSame =
      held?.owner.key === key &&
      held.owner.tool === tool &&
      held.owner.caller.user === caller.user &&
      held.owner.caller.tenant === caller.tenant
    if (!held || !isSame) throw new RpcError(RPC_CODES.invalidParams, new StateInvalid().message)
    this.#waiting.delete(id)
    return held
  }

  /** Keeps a call until it is resumed or its time is over. @throws {RpcError} if too many calls wait */
  hold(held: HeldCall): { readonly id: string; readonly timer: NodeJS.Timeout } {
    const { ttlMs, max, maxOfOne } = this.#options
    const { user, tenant } = held.owner.caller
    const own = [...this.#waiting.values()].filter(
      ({ owner: { caller } }) => caller.user === user && caller.tenant === tenant,
    )
    if (this.#waiting.size >= max || own.length >= maxOfOne)
      throw new RpcError(RPC_CODES.internalError, 'Too many calls wait for an answer.')
    const id = randomUUID()
    this.#waiting.set(id, held)
    const timer = setTimeout(() => this.#stop(id, 'nobody answered in time'), ttlMs).unref()
    return { id, timer }
  }

  /** Cancels a waiting call that nobody can resume. */
  cancel(id: string, why: string): void {
    this.#stop(id, why)
  }

  /** Cancels the waiting calls that may no longer run. */
  async review(mayRun: (owner: HeldOwner) => Promise<boolean>): Promise<void> {
    for (const [id, { owner }] of this.#waiting)
      if (!(await mayRun(owner).catch(() => false))) this.#stop(id, 'it is no longer allowed')
  }

  /** Cancels every waiting call. */
  close(): void {
    for (const id of this.#waiting.keys()) this.#stop(id, 'the gateway stops')
  }

  #stop(id: string, why: string): void {
    const held = this.#waiting.get(id)
    this.#waiting.delete(id)
    held?.cancel(new Error(why))
  }
}

type HeldEnd = { readonly result: McpResult | InputRequired } | { readonly error: unknown }

/** The client's current request for a call. */
interface HeldRound {
  readonly call: CallContext
  readonly log: ((params: JsonObject) => void) | undefined
  readonly resolve: (output: McpResult | InputRequired) => void
  readonly reject: (error: unknown) => void
}

/** One running call to a server of an earlier revision. It either runs in a round, or waits between two rounds. */
export class HeldCall {
  readonly owner: HeldOwner
  readonly #calls: HeldCalls
  readonly #canceller: Canceller = createCanceller()
  readonly #asks = new Map<
    string,
    { readonly method: string; readonly params: JsonObject; readonly answer: (result: JsonObject) => void }
  >()
  #round: HeldRound | undefined
  #timer: NodeJS.Timeout | undefined
  #isPausing = false
  #nextKey = 0
  #ended: HeldEnd | undefined

  constructor(calls: HeldCalls, owner: HeldOwner, run: (held: HeldCall) => Promise<McpResult | InputRequired>) {
    this.#calls = calls
    this.owner = owner
    run(this).then(
      (result) => this.#end({ result }),
      (error: unknown) => this.#end({ error }),
    )
  }

  /** Aborts when the call must stop. */
  readonly signal: Cancelling = this.#canceller

  /** Reports progress in the current round. Progress and log messages between two rounds are lost. */
  readonly onProgress = (progress: Progress): void => this.#round?.call.onProgress?.(progress)
  readonly onLog = (params: JsonObject): void => this.#round?.log?.(params)

  /** Answers a request of the server, in this round or a later one. */
  readonly ask = (method: string, params: JsonObject, withdrawn: Cancelling): Promise<JsonObject> =>
    new Promise((resolve, reject) => {
      const key = `ask-${++this.#nextKey}`
      const settle = (end: () => void) => {
        this.#asks.delete(key)
        end()
      }
      withdrawn.onAbort(() => settle(() => reject(withdrawn.reason)))
      this.#canceller.onAbort(() => settle(() => reject(new RpcError(RPC_CODES.internalError, 'The call has ended.'))))
      this.#asks.set(key, { method, params, answer: (result) => settle(() => resolve(result)) })
      this.#pauseSoon()
    })

  /** Runs until the call ends or the server waits for answers. `responses` answers the earlier requests. */
  next(call: CallContext, log: HeldRound['log'], responses: JsonObject = {}): Promise<McpResult | InputRequired> {
    clearTimeout(this.#timer)
    const { promise, resolve, reject } = Promise.withResolvers<McpResult | InputRequired>()
    const unwatch = call.onAbort(() => this.cancel(call.reason))
    this.#round = { call, log, resolve, reject }
    if (this.#ended) this.#settle()
    else if (call.aborted) this.cancel(call.reason)
    for (const [key, { method, answer }] of this.#asks) {
      const response = Object.hasOwn(responses, key) ? responses[key] : undefined
      // Without a usable answer the client is asked again, as a server of an earlier revision cannot ask again.
      if (isAnswerTo(method, response)) answer(response)
    }
    if (this.#asks.size > 0) this.#pauseSoon()
    return promise.finally(unwatch)
  }

  cancel(reason: unknown): void {
    this.#canceller.abort(reason)
  }

  /** Pauses soon, so that simultaneous requests are sent together. */
  #pauseSoon(): void {
    if (this.#isPausing) return
    this.#isPausing = true
    setImmediate(() => {
      this.#isPausing = false
      this.#pause()
    })
  }

  #pause(): void {
    const round = this.#round
    if (!round || this.#ended || this.#asks.size === 0) return
    try {
      const { id, timer } = this.#calls.hold(this)
      this.#timer = timer
      this.#round = undefined
      const requests = Object.fromEntries([...this.#asks].map(([key, { method, params }]) => [key, { method, params }]))
      round.resolve(new InputRequired({ requests, state: { held: id } } satisfies Asked))
    } catch (error) {
      this.#round = undefined
      round.reject(error)
      this.cancel(error)
    }
  }

  #end(ended: HeldEnd): void {
    this.#ended = ended
    this.#settle()
  }

  #settle(): void {
    const round = this.#round
    const ended = this.#ended
    if (!round || !ended) return
    this.#round = undefined
    if ('result' in ended) round.resolve(ended.result)
    else round.reject(ended.error)
  }
}

/** Returns the id of the held call in a state. */
export function heldIn(state: unknown): string | undefined {
  const held = typeof state === 'object' && state !== null && 'held' in state ? state.held : undefined
  return typeof held === 'string' ? held : undefined
}
