import { safely } from './async.ts'

/** The listeners of one kind of event. */
export interface Emitter<Message extends readonly unknown[]> {
  readonly size: number
  /** Returns a function that unsubscribes. A listener that subscribes twice is called twice. */
  subscribe(listener: (...message: Message) => unknown): () => void
  /** Calls the current listeners. A listener that throws or rejects does not stop the others. */
  emit(...message: Message): void
  /** Ends every subscription. */
  clear(): void
}

/** Returns an emitter without listeners. `onFault` receives errors of listeners; by default they are ignored. */
export function createEmitter<Message extends readonly unknown[] = []>(
  onFault?: (error: unknown) => void,
): Emitter<Message> {
  const listeners = new Set<(...message: Message) => void>()
  return {
    get size() {
      return listeners.size
    },
    subscribe(listener) {
      const own = safely(listener, onFault)
      listeners.add(own)
      return () => void listeners.delete(own)
    },
    emit(...message) {
      // A listener may subscribe or unsubscribe others.
      const current = [...listeners]
      for (const listener of current) if (listeners.has(listener)) listener(...message)
    },
    clear: () => listeners.clear(),
  }
}
