import type { ProbeAsking } from '@toolgate/core/groups'

/** The argument of `ask` in tests. */
export function asking(signal: AbortSignal = new AbortController().signal): ProbeAsking {
  return { signal, timeoutMs: 1000 }
}
