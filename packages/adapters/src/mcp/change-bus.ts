import { AsyncLocalStorage } from 'node:async_hooks'
import type { Caller } from '@toolgate/core'
import type { MaybePromise } from '@toolgate/core/internal'
import type { ListWatch } from '@toolgate/mcp'

/** What a server tells its clients has changed (`ServerEvent` of SDK v2). */
export type McpChange = (
  | { kind: 'tools_list_changed' }
  | { kind: 'prompts_list_changed' }
  | { kind: 'resources_list_changed' }
  | { kind: 'resource_updated'; uri: string }
) & { params?: { [field: string]: unknown } }

/** A `ServerEventBus` of SDK v2. */
export interface McpChangeBus {
  publish(change: McpChange): void
  subscribe(listener: (change: McpChange) => void): () => void
}

/** A bus, and the way to say for whom it is subscribed to next. */
export interface ChangeBus extends McpChangeBus {
  /** For the rest of the request that is being served. */
  enter(caller: () => MaybePromise<Caller>): void
}

/**
 * Gives a bus that tells each stream of `subscriptions/listen` of the changes of its own caller's list.
 *
 * The SDK's bus does not say who subscribes, but does so while it serves the request for which the server was made:
 * the caller goes with the request. Who comes without one hears of nothing but what is published for all, and that
 * tools changed is never that.
 */
export function createChangeBus(watch: ListWatch, onFault: (error: unknown) => void): ChangeBus {
  const asking = new AsyncLocalStorage<() => MaybePromise<Caller>>()
  const listeners = new Set<(change: McpChange) => void>()

  const follow = (callerOf: () => MaybePromise<Caller>, listener: (change: McpChange) => void) => {
    let isOpen = true
    let leave: (() => void) | undefined
    const begin = async () => {
      const caller = await callerOf()
      if (!isOpen) return
      const changed = () => listener({ kind: 'tools_list_changed' })
      leave = watch.add({ caller, isOpen: () => isOpen, changed })
    }
    begin().catch(onFault)
    return () => {
      isOpen = false
      leave?.()
    }
  }

  return {
    enter: (caller) => asking.enterWith(caller),
    publish(change) {
      if (change.kind === 'tools_list_changed') return watch.wake()
      for (const listener of listeners) {
        try {
          listener(change)
        } catch (error) {
          onFault(error)
        }
      }
    },
    subscribe(listener) {
      const own = (change: McpChange) => listener(change)
      listeners.add(own)
      const caller = asking.getStore()
      const leave = caller && follow(caller, own)
      return () => {
        listeners.delete(own)
        leave?.()
      }
    },
  }
}
