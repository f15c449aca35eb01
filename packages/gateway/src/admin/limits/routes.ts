import { maySee } from '../http/callers.ts'
import type { ApiDeps } from '../http/deps.ts'
import { parseQuery, type Route, wholeNumber } from '../http/request.ts'
import type { LimitRow, LimitsBody } from '../../model/rows.ts'

const MAX_LISTED = 1000

/** `GET /api/limits?limit=`: what is left of budgets, the least left first. A person of a tenant sees those of holders of it. */
export function limitsRoute({ budgets, clock }: ApiDeps): Route {
  return async ({ query, person }) => {
    const { limit = 100 } = parseQuery(query, { limit: wholeNumber(1, MAX_LISTED) })
    const all = (await budgets?.(MAX_LISTED)) ?? []
    const nowMs = clock.wallMs()
    const limits = all
      .filter(({ holder }) => maySee(person, holder))
      .slice(0, limit)
      .map(({ resetMs, ...row }): LimitRow => ({ ...row, ...(resetMs > 0 && { until: Math.ceil(nowMs + resetMs) }) }))
    return { limits } satisfies LimitsBody
  }
}
