import type { CallPattern } from '../history/facts.ts'

/** The facts about a run that conditions read. */
export interface RunUse {
  readonly readsRun: boolean
  readonly readsOrigin: boolean
  readonly readsAddressees: boolean
  readonly labels: readonly string[]
  readonly patterns: readonly CallPattern[]
}

/** Returns what several conditions together read of a run, if anything. */
export function joinRunUse(uses: readonly (RunUse | undefined)[]): RunUse | undefined {
  const known = uses.filter((use) => use !== undefined)
  if (known.length < 2) return known[0]
  const patterns = known.flatMap((use) => use.patterns.map((pattern) => [pattern.key, pattern] as const))
  return {
    readsRun: known.some((use) => use.readsRun),
    readsOrigin: known.some((use) => use.readsOrigin),
    readsAddressees: known.some((use) => use.readsAddressees),
    labels: [...new Set(known.flatMap(({ labels }) => labels))],
    patterns: [...new Map(patterns).values()],
  }
}
