/** A value that parts of the page follow. */
export interface Store<Value> {
  readonly current: Value
  /** Calls the listeners, unless the value is the current one. */
  set(next: Value): void
  subscribe(listener: () => void): () => void
}

export function createStore<Value>(current: Value): Store<Value> {
  const { call, add } = createListeners<void>()
  return {
    get current() {
      return current
    },
    set(next) {
      if (next === current) return
      current = next
      call()
    },
    subscribe: add,
  }
}

interface Listeners<Message> {
  call(message: Message): void
  /** Returns the function that removes the listener again. */
  add(listener: (message: Message) => void): () => void
}

export function createListeners<Message>(): Listeners<Message> {
  const listeners = new Set<(message: Message) => void>()
  return {
    call(message) {
      for (const listener of listeners) listener(message)
    },
    add(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Calls back after a delay. Returns the function that cancels it. */
export function afterMs(work: () => void, ms: number): () => void {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}
