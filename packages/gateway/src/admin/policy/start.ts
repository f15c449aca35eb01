import type { Gate } from '@toolgate/core'
import { clauseText } from '@toolgate/core/policy'
import type { Room } from '../../heart/room.ts'
import type { Family } from '../../telemetry/exposition.ts'
import { ClauseHits } from './clause-hits.ts'

/** Counts the hits of clauses over restarts and replicas. */
export const policy: Room<Pick<ClauseHits, 'read'>> = {
  name: 'policy',
  open({ gate, stores, clock, onFault }) {
    const hits = new ClauseHits({ gate, store: stores.clauses, clock, onFault })
    return {
      service: hits,
      metrics: [() => clauseFamily(gate.coverage())],
      // The last calls of the gate must be counted too.
      settle: () => hits.close(),
    }
  },
}

/** The maximum number of clauses in the metrics. More series would be too many for most users of metrics. */
const MAX_CLAUSES = 500

function clauseFamily(clauses: ReturnType<Gate['coverage']>): Family {
  return {
    name: 'toolgate_clause_hits_total',
    type: 'counter',
    help: 'Calls for which a clause of the policy held, by clause.',
    samples: clauses.slice(0, MAX_CLAUSES).map(({ ref, path, shadow, hits }) => ({
      labels: { clause: clauseText(ref), path, kind: ref.kind, shadow: shadow ? 'true' : 'false' },
      value: hits,
    })),
  }
}
