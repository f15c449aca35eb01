/** A value that parts of the page subscribe to. */
export interface Store<Value> {
  readonly current: Value
  /** Sets the value, and calls the listeners if it differs from the current one. */
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
  /** Adds a listener. Returns a function that removes it. */
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

/** Runs work after a delay. Returns a function that cancels it. */
export function afterMs(work: () => void, ms: number): () => void {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}
