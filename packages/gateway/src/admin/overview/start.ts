import type { Room } from '../../heart/room.ts'
import type { ListCostRow } from '../../model/rows.ts'
import type { Family } from '../../telemetry/exposition.ts'
import { createNamedCallers } from '../http/callers.ts'
import { createListCosts } from './list-costs.ts'

/** The maximum number of callers whose list costs are in the metrics. */
const MAX_LISTS = 100

/** The token costs of agents' lists. A person sees those of the callers that they may see. */
export const overview: Room = {
  name: 'overview',
  open({ gate, clock, revisions }) {
    const costs = createListCosts()
    const callers = createNamedCallers(() => revisions.current.callers)
    return {
      metrics: [
        async (person) => {
          if (!person) return []
          const agents = [...callers(person).values()].filter((one) => one.for === 'mcp')
          return listFamily((await costs.all(agents, { gate, clock }, MAX_LISTS)).lists)
        },
      ],
    }
  },
}

/** Returns the metric of list costs. The callers come from the configuration. */
export function listFamily(rows: readonly Pick<ListCostRow, 'user' | 'tokens'>[]): readonly Family[] {
  if (rows.length === 0) return []
  return [
    {
      name: 'toolgate_list_tokens',
      type: 'gauge',
      help: "What a caller's list of tools costs its model: an estimate of 4 bytes a token.",
      samples: rows.map(({ user, tokens }) => ({ labels: { user }, value: tokens })),
    },
  ]
}
