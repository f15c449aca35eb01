import { readFileSync } from 'node:fs'
import type { Clock } from '@toolgate/core'

/** The clocks that all processes of this machine share: Node's own monotonic clock starts with each process. */
export const machineClock: Clock = {
  monotonicMs() {
    const [seconds, nanoseconds] = process.hrtime()
    return seconds * 1e3 + nanoseconds / 1e6
  },
  wallMs: () => Date.now(),
}

/** Gives what tells one boot of this machine from another, where the system says it. */
export function readBootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined
  }
}
