import { type ReactElement, useState } from 'react'
import { formatTime, count } from '../format.ts'
import { useHealth, useApi } from '../hooks.ts'
import type { WarningsBody, AuditEvidenceBody } from '../wire.ts'
import { Exact } from './exact.tsx'

/**
 * Shows that the page is out of date while the gateway does not answer. The element is always present, so that screen
 * readers announce changes.
 */
export function StaleStrip(): ReactElement {
  const { isStale, sinceMs } = useHealth()
  return (
    <div role="status" className={isStale ? 'stale-strip' : undefined}>
      {isStale && (
        <p>
          <b>Not connected.</b> This page is from {formatTime(sinceMs, Date.now())}. The console keeps trying.
        </p>
      )}
    </div>
  )
}

const REFRESH_MS = 15_000

const DISMISSED = 'toolgate-dismissed-warnings'

/**
 * Shows the warnings about the configuration on every page, until they are dismissed in this tab. Other warnings are
 * shown again. The start page lists them all the same.
 */
export function Warnings(): ReactElement | null {
  const { data } = useApi<WarningsBody>({ key: ['warnings'], path: '/api/warnings', everyMs: REFRESH_MS })
  const [dismissed, setDismissed] = useState(() => sessionStorage.getItem(DISMISSED))
  if (!data || data.warnings.length === 0) return null
  const now = JSON.stringify(data.warnings.map(({ path, text }) => [path, text]))
  if (dismissed === now) return null
  const dismiss = (): void => {
    sessionStorage.setItem(DISMISSED, now)
    setDismissed(now)
  }
  return (
    <section className="strip warnings" aria-label="Warnings">
      <button type="button" className="quiet dismiss" onClick={dismiss}>
        Dismiss<span className="unseen"> the warnings</span>
      </button>
      <details>
        <summary>{count(data.warnings.length, 'warning')} about the configuration</summary>
        <ul>
          {data.warnings.map(({ path, text }) => (
            <li key={`${path} ${text}`}>
              <code>
                <Exact text={path} />
              </code>
              : <Exact text={text} />
            </li>
          ))}
        </ul>
      </details>
    </section>
  )
}

/** Warns if the audit has no checkpoints, or if a person who can change the audit could also change its checkpoints. */
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
