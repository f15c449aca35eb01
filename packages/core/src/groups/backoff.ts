const FIRST_MS = 1000
const MAX_MS = 60_000

/** Gives how long to wait after so many failures in a row: half to all of a delay that doubles each time. */
export function backoffMs(failures: number, random: () => number): number {
  const fullMs = Math.min(FIRST_MS * 2 ** Math.min(failures - 1, 16), MAX_MS)
  // Half of it at random: what failed together does not come back together.
  return fullMs * (0.5 + random() / 2)
}
