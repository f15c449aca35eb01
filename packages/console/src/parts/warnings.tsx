import type { ReactElement } from 'react'
import { count } from '../format.ts'
import { useApi } from '../hooks.ts'
import type { WarningsBody } from '../wire.ts'
import { Exact } from './exact.tsx'

const REFRESH_MS = 15_000

/** Shows what the configuration allows and probably does not mean, on every page. Nothing while nothing is wrong. */
export function Warnings(): ReactElement | null {
  const { data } = useApi<WarningsBody>({ key: ['warnings'], path: '/api/warnings', everyMs: REFRESH_MS })
  if (!data || data.warnings.length === 0) return null
  return (
    <section className="warnings" aria-label="Warnings">
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
