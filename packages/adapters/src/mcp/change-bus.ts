import { AsyncLocalStorage } from 'node:async_hooks'
import type { Caller } from '@toolgate/core'
import type { ListWatch } from '@toolgate/mcp'

/** A change that a server announces to its clients (`ServerEvent` of SDK v2). */
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

/** A bus that knows the caller of each subscription. */
export interface ChangeBus extends McpChangeBus {
  /** Sets the caller of later subscriptions within the current request. */
  enter(caller: () => Promise<Caller>): void
}

/**
 * Returns a bus that notifies each stream of `subscriptions/listen` of changes to its own caller's list.
 *
 * The SDK subscribes while it serves the request, so the caller is stored with the request. A subscription without a
 * caller gets only changes that are published to all, which never include changes of tools.
 */
export function createChangeBus(watch: ListWatch, onFault: (error: unknown) => void): ChangeBus {
  const asking = new AsyncLocalStorage<() => Promise<Caller>>()
  const listeners = new Set<(change: McpChange) => void>()

  const follow = (callerOf: () => Promise<Caller>, listener: (change: McpChange) => void) => {
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
