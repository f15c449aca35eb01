import type { Answer } from '../../heart/route.ts'
import { maySee } from '../http/callers.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { parseQuery, wholeNumber } from '../http/request.ts'
import type { LimitRow, LimitsBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'limits',
  open: (heart) => ({
    routes: [{ method: 'GET', path: '/api/limits', by: 'person', answer: limitsRoute(heart) }],
  }),
}

const MAX_LISTED = 1000

/**
 * `GET /api/limits?limit=`: the remaining budgets, the smallest rest first. A person of a tenant sees only those of its
 * holders.
 */
function limitsRoute({ gate, clock }: Pick<Heart, 'gate' | 'clock'>): Answer {
  return async ({ query, person }) => {
    const { limit = 100 } = parseQuery(query, { limit: wholeNumber(1, MAX_LISTED) })
    const all = await gate.budgets(MAX_LISTED)
    const nowMs = clock.wallMs()
    const limits = all
      .filter(({ holder }) => maySee(person, holder))
      .slice(0, limit)
      .map(({ resetMs, ...row }): LimitRow => ({ ...row, ...(resetMs > 0 && { until: Math.ceil(nowMs + resetMs) }) }))
    return { limits } satisfies LimitsBody
  }
}
