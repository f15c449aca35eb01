import { type ReactElement, useId } from 'react'
import { count, toSentence } from '../format.ts'
import type { ToolSection } from '../tool-list.ts'
import type { ServerRow } from '../wire.ts'
import { ServerBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { ToolItem } from './tool-item.tsx'
import { Ago } from './when.tsx'

/** One server: its state, and its tools. */
export function ServerSection({ section, nowMs }: { section: ToolSection; nowMs: number }): ReactElement {
  const { name, server, tools, shown } = section
  const id = useId()
  const seen = tools.filter(({ visible }) => visible).length
  return (
    <section className="server" aria-labelledby={id}>
      <div className="server-head">
        <h2 id={id}>{name === '' ? 'Without a server' : <Exact text={name} />}</h2>
        {server && <ServerBadge status={server.status} />}
        <span className="dim">
          {[`${seen} of ${count(tools.length, 'tool')} visible`, ...(server ? factsOf(server) : [])].join(' · ')}
        </span>
      </div>
      {server && <ServerDetail server={server} nowMs={nowMs} />}
      {shown.length > 0 && (
        <ul className="tools">
          {shown.map((tool) => (
            <ToolItem key={tool.id} tool={tool} nowMs={nowMs} />
          ))}
        </ul>
      )}
    </section>
  )
}

function ServerDetail({ server, nowMs }: { server: ServerRow; nowMs: number }): ReactElement {
  const { status, reason, since, rejected } = server
  return (
    <>
      {status !== 'ready' && (
        <p className="server-reason">
          <Exact
            text={toSentence(reason ?? (status === 'starting' ? 'it has not answered yet' : 'it gives no reason'))}
          />{' '}
          Since <Ago ms={since} nowMs={nowMs} />.
        </p>
      )}
      {rejected.length > 0 && (
        <details className="rejected">
          <summary>{count(rejected.length, 'tool')} that it lists cannot be offered</summary>
          <ul>
            {rejected.map(({ tool, reason: why }) => (
              <li key={tool}>
                <Exact text={tool} className="id" /> <Exact text={toSentence(why)} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}

function factsOf({ era, restarts }: ServerRow): readonly string[] {
  return [era === undefined ? '' : `${era} protocol`, restarts > 0 ? count(restarts, 'restart') : ''].filter(Boolean)
}
