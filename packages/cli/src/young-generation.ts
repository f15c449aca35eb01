import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/**
 * The maximum number of bytes of the young generation. It has two halves, of which one is always empty, and grows up to
 * 128 MB: 64 MB after some thousand calls. With 16 MB a call costs the same CPU time, and the gateway needs 50 MB less;
 * with 2 MB it costs 20 % more (docs/decisions/0030).
 */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Keeps the young generation at its first 2 MB, because a start leaves few objects. `--max-semi-space-size` has no
 * effect in a running process.
 */
export function keepYoungGenerationSmall(): void {
  setGrowth(1)
}

/** Lets the young generation grow with the load, up to a bound. V8 shrinks it again in an idle process. */
export function growYoungGeneration(maxBytes: number = MAX_BYTES): void {
  let growth = 2
  setGrowth(growth)
  new PerformanceObserver(() => {
    const wanted = youngBytes() < maxBytes ? 2 : 1
    if (wanted !== growth) setGrowth((growth = wanted))
  }).observe({ entryTypes: ['gc'] })
}

function youngBytes(): number {
  return getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')?.space_size ?? 0
}

/**
 * Sets the factor by which V8 grows the young generation when too much survives. V8 reads the flag at each collection.
 */
function setGrowth(factor: number): void {
  setFlagsFromString(`--semi-space-growth-factor=${factor}`)
}
