import type { ComponentType } from 'react'
import { createStore } from './store.ts'

/** A part that is loaded on demand. While it loads, neither field is set. */
export interface LaterState<Props> {
  readonly Content?: ComponentType<Props>
  readonly hasFailed?: true
}

/** A part of the console that is loaded when it is first needed. */
export interface Later<Props = object> {
  readonly current: LaterState<Props>
  /**
   * Loads the part, once. After a failure the page must be reloaded, because the files may have another version by
   * then.
   */
  load(): Promise<void>
  subscribe(listener: () => void): () => void
}

export function createLater<Props>(load: () => Promise<ComponentType<Props>>): Later<Props> {
  const store = createStore<LaterState<Props>>({})
  let loading: Promise<void> | undefined
  return {
    get current() {
      return store.current
    },
    load() {
      loading ??= load().then(
        (Content) => store.set({ Content }),
        () => store.set({ hasFailed: true }),
      )
      return loading
    },
    subscribe: store.subscribe,
  }
}
