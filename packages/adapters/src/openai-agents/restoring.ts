import { AsyncLocalStorage } from 'node:async_hooks'

const restoring = new AsyncLocalStorage<true>()

/**
 * Runs what reads a saved state back. The SDK cannot read back the call of a tool that is hidden by now, and nothing
 * is sent or run meanwhile: so tools are there for that, and refuse when they are called.
 */
export function whileRestoring<T>(work: () => Promise<T>): Promise<T> {
  return restoring.run(true, work)
}

export function isRestoring(): boolean {
  return restoring.getStore() === true
}
