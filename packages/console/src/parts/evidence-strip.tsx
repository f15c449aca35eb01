import type { ReactElement } from 'react'
import { useApi } from '../hooks.ts'
import type { AuditEvidenceBody } from '../wire.ts'

const REFRESH_MS = 15_000

/** Says when nothing vouches for the audit any more, and when whoever changes the audit could change its proofs too. */
export function EvidenceStrip(): ReactElement {
  const { data } = useApi<AuditEvidenceBody>({
    key: ['audit', 'evidence'],
    path: '/api/audit/evidence',
    everyMs: REFRESH_MS,
  })
  const problems = data?.problems ?? []
  return (
    <div role="status">
      {problems.length > 0 && (
        <div className="panel failed">
          <p className="panel-title">The audit is not fully proven</p>
          {problems.map(({ code, message }) => (
            <p key={code}>{message}</p>
          ))}
        </div>
      )}
    </div>
  )
}
