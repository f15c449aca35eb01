import { readOwnJson } from '@toolgate/values/json'
import type { Budget } from '@toolgate/core/call'
import type { Room } from '../../heart/room.ts'
import type { Family } from '../../telemetry/exposition.ts'

/** The maximum number of holders, because the store is asked about each one. */
const MAX_BUDGETS = 200

/** The metrics of budgets. */
export const limits: Room = {
  name: 'limits',
  open: ({ gate }) => ({ metrics: [async () => budgetFamilies(await gate.budgets(MAX_BUDGETS))] }),
}

/**
 * Returns the metrics of budgets. Rules are labels, because the configuration names them. Holders are not labels.
 */
export function budgetFamilies(
  budgets: readonly Pick<Budget, 'rule' | 'limit' | 'max' | 'used' | 'remaining'>[],
): readonly Family[] {
  const byRule = Map.groupBy(budgets, ({ rule, limit }) => JSON.stringify({ rule, limit }))
  const samples = (value: (of: typeof budgets) => number) =>
    [...byRule].map(([labels, of]) => ({ labels: readOwnJson(labels) as Record<string, string>, value: value(of) }))
  return [
    {
      name: 'toolgate_budget_used_ratio',
      type: 'gauge',
      help: 'The used part of the budget of a limit with a cost, from 0 to 1: of the holder with the least left.',
      samples: samples((of) => Math.max(...of.map(({ used, max }) => used / max))),
    },
    {
      name: 'toolgate_budgets_spent',
      type: 'gauge',
      help: 'Holders with nothing left of their budget, by limit.',
      samples: samples((of) => of.filter(({ remaining }) => remaining === 0).length),
    },
  ]
}
