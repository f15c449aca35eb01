import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until `check` returns something true. */
export async function until<T>(
  check: () => T | false | undefined | Promise<T | false | undefined>,
  timeoutMs: number = 10_000,
): Promise<T> {
  for (const deadlineMs = performance.now() + timeoutMs; ;) {
    const value = await check()
    if (value) return value
    if (performance.now() > deadlineMs) throw new Error(`not within ${timeoutMs} ms: ${check.toString()}`)
    await sleep(5)
  }
}
