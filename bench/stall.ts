/** The longest time in which the event loop could do nothing else, and what the whole took. */
export interface Stall {
  readonly longestMs: number
  /** The most that this thread did between two turns, in CPU time: other processes do not count. */
  readonly longestCpuMs: number
  readonly cpuMs: number
}

/**
 * Measures the longest gap between two turns of the event loop while something runs.
 *
 * Wall time: on a busy machine a gap may be longer than the work in it, so the shortest of several runs counts.
 */
export async function longestStall(run: () => unknown, rounds = 3): Promise<Stall> {
  let best: Stall = {
    longestMs: Number.POSITIVE_INFINITY,
    longestCpuMs: Number.POSITIVE_INFINITY,
    cpuMs: Number.POSITIVE_INFINITY,
  }
  for (let round = 0; round < rounds; round++) {
    globalThis.gc?.()
    const stall = await oneStall(run)
    if (stall.longestMs < best.longestMs) best = stall
    // A case that is far over its budget need not be seen three times.
    if (best.longestMs > 1000) return best
  }
  return best
}

async function oneStall(run: () => unknown): Promise<Stall> {
  let longestMs = 0
  let longestCpuMs = 0
  let last = performance.now()
  let lastCpuMs = threadCpuMs()
  let running = true
  const turn = () => {
    const [now, cpuMs] = [performance.now(), threadCpuMs()]
    longestMs = Math.max(longestMs, now - last)
    longestCpuMs = Math.max(longestCpuMs, cpuMs - lastCpuMs)
    last = now
    lastCpuMs = cpuMs
    if (running) setImmediate(turn)
  }
  await new Promise((resolve) => setImmediate(resolve))
  const before = process.cpuUsage()
  last = performance.now()
  lastCpuMs = threadCpuMs()
  setImmediate(turn)
  await run()
  running = false
  turn()
  const { user, system } = process.cpuUsage(before)
  return { longestMs, longestCpuMs, cpuMs: (user + system) / 1000 }
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
