import type { ComponentType } from 'react'
import { createStore } from './store.ts'

/** A part that is loaded on demand: neither field while it loads. */
export interface LaterState<Props> {
  readonly Content?: ComponentType<Props>
  readonly hasFailed?: true
}

/** A part of the console that is loaded when it is first needed. */
export interface Later<Props = object> {
  readonly current: LaterState<Props>
  /** Loads it, once. A failure stays until the page is loaded again: the files may be of another version by then. */
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
