import type { ComponentType } from 'react'

/** A part that is loaded on demand: neither field while it loads. */
export interface LaterState<Props> {
  readonly Content?: ComponentType<Props>
  readonly hasFailed?: true
}

/** A part of the console that is loaded when it is first needed. */
export interface Later<Props = object> {
  readonly state: LaterState<Props>
  /** Loads it, once. A failure stays until the page is loaded again: the files may be of another version by then. */
  load(): Promise<void>
  subscribe(listener: () => void): () => void
}

export function createLater<Props>(load: () => Promise<ComponentType<Props>>): Later<Props> {
  const listeners = new Set<() => void>()
  let state: LaterState<Props> = {}
  let loading: Promise<void> | undefined
  const set = (next: LaterState<Props>): void => {
    state = next
    for (const listener of listeners) listener()
  }
  return {
    get state() {
      return state
    },
    load() {
      loading ??= load().then(
        (Content) => set({ Content }),
        () => set({ hasFailed: true }),
      )
      return loading
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
