import { AsyncLocalStorage } from 'node:async_hooks'
import type { CallRefused, Gate, View } from '@toolgate/core'
import type { GuardedCall, GuardedRun } from '../shared/run.ts'
import type { AnyRunContext } from './sdk-types.ts'

/** Where a run comes from. */
export interface Origin {
  readonly gate: Pick<Gate, 'catalog' | 'view'>
  readonly runContext: AnyRunContext
  /** The guard whose run it is; none of a sub-agent's, which is its caller's. */
  readonly guard: object | undefined
  readonly bindsApprovals: boolean
  /** The run as of now: another one, where it is another who runs the agent by now. */
  current(): Promise<OpenRun>
}

const calling = new AsyncLocalStorage<OpenRun>()

/** Gives the run whose call is under way, of whatever guard: what begins within it is a sub-agent's. */
export function callingRun(): OpenRun | undefined {
  return calling.getStore()
}

/** One run, or that of a sub-agent within it. */
export class OpenRun {
  readonly guarded: GuardedRun
  readonly origin: Origin
  readonly #refused = new Map<string, CallRefused>()
  #listing: Listing | undefined
  #step = -1

  constructor(guarded: GuardedRun, origin: Origin) {
    this.guarded = guarded
    this.origin = origin
  }

  /** Answers for the step that an agent prepares already; `undefined` where this question begins another one. */
  stillSees(id: string, agent: object): boolean | undefined {
    return this.#listing?.isOpenFor(agent, id) ? this.#listing.has(id) : undefined
  }

  /** Answers whether the step that an agent prepares sees a tool: availability and locks are as they are now. */
  sees(id: string, agent: object): boolean {
    if (this.#listing === undefined || !this.#listing.isOpenFor(agent, id)) {
      this.#listing = new Listing(this.guarded.view.narrow({}), agent)
      this.#step += 1
    }
    return this.#listing.has(id)
  }

  call(call: GuardedCall): ReturnType<GuardedRun['call']> {
    return calling.run(this, () => this.guarded.call(this.#within(call)))
  }

  requestApproval(call: GuardedCall): ReturnType<GuardedRun['requestApproval']> {
    return this.guarded.requestApproval(this.#within(call))
  }

  /** What was opened since the run began is in the view of the step only. */
  #within(call: GuardedCall): GuardedCall {
    return { ...call, view: this.#listing?.view, step: Math.max(0, this.#step) }
  }

  /** The SDK asks for approvals first and calls then: what was refused at the first is not asked again at the second. */
  keepRefusal(key: string, refused: CallRefused): void {
    this.#refused.set(key, refused)
  }

  takeRefusal(key: string): CallRefused | undefined {
    const refused = this.#refused.get(key)
    this.#refused.delete(key)
    return refused
  }
}

/** What an agent asks for before one request of its model: each tool once. */
class Listing {
  readonly view: View
  readonly #agent: object
  readonly #asked = new Set<string>()

  constructor(view: View, agent: object) {
    this.view = view
    this.#agent = agent
  }

  /** The SDK does not say when a step begins: it is when another agent asks, or the same one for the same tool again. */
  isOpenFor(agent: object, id: string): boolean {
    return this.#agent === agent && !this.#asked.has(id)
  }

  has(id: string): boolean {
    this.#asked.add(id)
    return this.view.has(id)
  }
}
