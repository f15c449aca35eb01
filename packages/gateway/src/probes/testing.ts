import type { ProbeAsking } from '@toolgate/core/groups'

/** What a probe is asked with in tests. */
export function asking(signal: AbortSignal = new AbortController().signal): ProbeAsking {
  return { signal, timeoutMs: 1000 }
}
