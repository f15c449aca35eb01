import type { HistoryUse, HistoryUses } from '../history/facts.ts'
import { CLAUSE_KINDS, type ParsedClause, type ParsedPolicy } from './parse.ts'
import { joinRunUse } from './run-use.ts'
import { partsOf } from './shadow.ts'

/** Returns what policies read of a run. If they read nothing, no history is kept. */
export function historyUse(policies: readonly ParsedPolicy[]): HistoryUses {
  const parts = policies.map(partsOf)
  return {
    enforced: useOf(parts.map(({ enforced }) => enforced)),
    shadows: useOf(parts.flatMap(({ shadow }) => shadow ?? [])),
  }
}

function useOf(policies: readonly ParsedPolicy[]): HistoryUse {
  const use = joinRunUse(policies.flatMap(clausesOf).map(({ run }) => run))
  return {
    readsRun: use?.readsRun ?? false,
    readsOrigin: use?.readsOrigin ?? false,
    patterns: use?.patterns ?? [],
    labels: use?.labels.toSorted() ?? [],
  }
}

export function clausesOf(policy: ParsedPolicy): readonly ParsedClause[] {
  return CLAUSE_KINDS.flatMap((kind) => policy[kind] ?? [])
}
