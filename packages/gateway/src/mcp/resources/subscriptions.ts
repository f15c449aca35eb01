import type { CallContext, Caller, Gate } from '@toolgate/core'
import { isNotFound, type ItemAnswer, type ResourceOwners, resourceNotFound, toItemAnswer } from '@toolgate/mcp'
import { once } from '../../util/lifecycle.ts'
import { clientNames, type NamesInLists } from '../../calls/client-names.ts'
import { RpcFault } from '../../model/protocol.ts'

export interface ResourceSubscriptionsDeps {
  readonly gate: Pick<Gate, 'view'>
  readonly names: NamesInLists
  readonly owners: Pick<ResourceOwners, 'idOf'>
  /** Watches a resource of a server. Resolves to the function that stops watching. */
  readonly watchResource: (server: string, uri: string, call: CallContext, listener: () => void) => Promise<() => void>
  readonly onFault: (error: unknown) => void
  /** The maximum for one key. Default 1,000. */
  readonly maxOfOne?: number
  /** The maximum for all keys. Default 20,000. */
  readonly max?: number
}

interface SubscribeRequest {
  readonly uri: string
  /** The caller, in the session of the client if it has one. */
  readonly caller: Caller
  /** The caller whose limit counts. */
  readonly owner: Caller
  readonly era: 'legacy' | 'modern'
  /** Whether no open stream could carry a notification. A new subscription may replace an idle one. */
  readonly isIdle?: () => boolean
  /** Called after each change that the caller may see. */
  readonly updated: () => void
}

/** A subscription, or the error of a refused one. */
type Subscribed = { readonly end: () => void } | Extract<ItemAnswer, { readonly error: object }>

interface OpenSubscriptionEntry {
  readonly isIdle: () => boolean
  end: () => void
}

/** Changes within this time are sent as one notification, so that a server cannot flood its clients. */
const TOGETHER_MS = 50

/**
 * The subscriptions of clients to resources.
 *
 * A subscription needs the same permission as a read, and is limited and recorded like a read. If a read needs an
 * approval, the subscription is refused. Each notification is decided separately.
 */
export class ResourceSubscriptions {
  readonly #deps: ResourceSubscriptionsDeps
  /** By key, oldest first. */
  readonly #all = new Map<Caller, Set<OpenSubscriptionEntry>>()
  #count = 0

  constructor(deps: ResourceSubscriptionsDeps) {
    this.#deps = deps
  }

  get count(): number {
    return this.#count
  }

  /** @throws {RpcFault} `subscriptions_full` */
  async subscribe({ uri, caller, owner, era, updated, isIdle = () => false }: SubscribeRequest): Promise<Subscribed> {
    const { gate, names, owners, watchResource } = this.#deps
    const entry: OpenSubscriptionEntry = { isIdle, end: () => {} }
    const leave = this.#enter(owner, entry)
    try {
      const view = await gate.view(caller)
      const id = owners.idOf(uri, caller)
      const resource = id === undefined ? undefined : view.get(id)
      const notify = this.#together(() => this.#tell(caller, { uri, id: id ?? '' }, updated))
      let unwatch: (() => void) | undefined
      const outcome = await view.call({
        tool: id,
        input: { uri },
        calledAs: uri,
        nameOf: clientNames(names, view, { id, name: uri }),
        as: {
          kind: 'subscribe',
          run: async (_, call) => {
            unwatch = await watchResource(resource?.namespace ?? '', resource?.uri ?? uri, call, notify.wake)
            return {}
          },
        },
      })
      const end = once(() => {
        notify.stop()
        unwatch?.()
        leave()
      })
      entry.end = end
      const answer = toItemAnswer(outcome, resourceNotFound(uri, era), isNotFound)
      if (!('error' in answer)) return { end }
      end()
      return answer
    } catch (error) {
      leave()
      throw error
    }
  }

  #enter(owner: Caller, entry: OpenSubscriptionEntry): () => void {
    const { maxOfOne = 1000, max = 20_000 } = this.#deps
    const own = this.#all.get(owner) ?? new Set()
    if (own.size >= maxOfOne) [...own].find(({ isIdle }) => isIdle())?.end()
    if (own.size >= maxOfOne || this.#count >= max)
      throw new RpcFault('subscriptions_full', 'Subscription limit reached: too many resources are subscribed to.')
    this.#all.set(owner, own)
    own.add(entry)
    this.#count++
    return once(() => {
      this.#count--
      own.delete(entry)
      if (own.size === 0 && this.#all.get(owner) === own) this.#all.delete(owner)
    })
  }

  async #tell(caller: Caller, { uri, id }: { uri: string; id: string }, updated: () => void): Promise<void> {
    const { gate, owners } = this.#deps
    const view = await gate.view(caller)
    if (owners.idOf(uri, caller) === id && view.has(id) && view.explain(id).outcome === 'allow') updated()
  }

  #together(tell: () => Promise<void>): { wake(): void; stop(): void } {
    let timer: NodeJS.Timeout | undefined
    let isStopped = false
    const run = () => {
      timer = undefined
      if (!isStopped) tell().catch(this.#deps.onFault)
    }
    return {
      wake: () => {
        if (!isStopped) timer ??= setTimeout(run, TOGETHER_MS).unref()
      },
      stop: () => {
        isStopped = true
        clearTimeout(timer)
      },
    }
  }
}
