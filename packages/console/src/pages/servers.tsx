import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useRef, useState } from 'react'
import { linkTo } from '../address.ts'
import { type ApiError, postJson } from '../api.ts'
import { count, formatTime, instancesText, toSentence } from '../format.ts'
import { type Choose, useAddress, useApi } from '../hooks.ts'
import { OWN } from '../people.ts'
import { ServerBadge } from '../parts/badges.tsx'
import { Exact } from '../parts/exact.tsx'
import { HaltButton } from '../parts/halt-dialog.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import { RowTable } from '../parts/row-table.tsx'
import { Since } from '../parts/when.tsx'
import type { ConnectionsBody, LogsBody, RestartedBody, ServerRow, ServersBody, WarningsBody } from '../wire.ts'

const REFRESH_MS = 2000
const COLUMNS = ['Server', 'State', 'Restarts', 'Tools', 'Instances'] as const
const NUMBERS = ['Restarts', 'Tools']
const LINES = 200
/** How many users or rejected items are shown at first, and with each press more. */
const PAGE = 50

/** The servers behind the gateway: how each is, what it says, and its restart. */
export function ServersPage(): ReactElement {
  const [{ choices }, choose] = useAddress()
  const { data, error, refetch } = useApi<ServersBody>({
    key: ['servers'],
    path: '/api/servers',
    everyMs: REFRESH_MS,
    isUnannounced: true,
  })
  const name = choices.get('server') ?? ''
  const chosen = data?.servers.find((row) => row.name === name)
  return (
    <>
      <div className="page-head">
        <h1>Servers</h1>
        <p>The MCP servers behind this gateway: their state, their logs and their instances.</p>
      </div>
      {error && !data && <Failed error={error} retry={refetch} />}
      {!data && !error && <Loading what="the servers" />}
      {data && data.servers.length === 0 && (
        <Empty title="No servers">
          <p>
            Add one under <code>servers:</code> in toolgate.yaml.
          </p>
        </Empty>
      )}
      {data && data.servers.length > 0 && (
        <RowTable label="The servers" caption="Servers, in the order of the file" columns={COLUMNS} numbers={NUMBERS}>
          {data.servers.map((row) => (
            <Row key={row.name} row={row} isChosen={row === chosen} choose={choose} />
          ))}
        </RowTable>
      )}
      {chosen && <Details key={chosen.name} row={chosen} mayOperate={data?.mayOperate === true} />}
      {data && name !== '' && !chosen && <Empty title="Unknown server" />}
    </>
  )
}

function Row({ row, isChosen, choose }: { row: ServerRow; isChosen: boolean; choose: Choose }): ReactElement {
  const { name, status, reason, since, restarts, toolCount, instances } = row
  return (
    <tr className={status === 'stopped' ? 'off' : undefined}>
      <th scope="row">
        <button
          type="button"
          className="fold"
          aria-expanded={isChosen}
          onClick={() => choose({ server: isChosen ? '' : name })}
        >
          <Exact text={name} className="id" />
        </button>
      </th>
      <td data-label="State">
        <div>
          <ServerBadge status={status} /> <Since ms={since} />
          {reason !== undefined && (
            <span className="sub">
              <Exact text={toSentence(reason)} />
            </span>
          )}
        </div>
      </td>
      <td data-label="Restarts" className="n">
        {restarts}
      </td>
      <td data-label="Tools" className="n">
        <a href={linkTo('tools', { q: `${name}:` })}>{toolCount}</a>
      </td>
      <td data-label="Instances">{instances ? instancesText(instances) : 'shared by all'}</td>
    </tr>
  )
}

function Details({ row, mayOperate }: { row: ServerRow; mayOperate: boolean }): ReactElement {
  const { name, era, rejected, instances, changed } = row
  return (
    <section className="sheet server-details" aria-label={`Server ${name}`}>
      <div className="server-actions">
        {mayOperate && <Restart row={row} />}
        <HaltButton target={{ tool: `${name}:*` }} label={`Halt ${name}…`} />
        <a href={linkTo('calls', { text: `${name}:` })}>Its calls</a>
        <Connection server={name} />
        {era !== undefined && (
          <span className="dim">{era === 'modern' ? 'MCP 2026-07-28' : 'an earlier MCP revision'}</span>
        )}
      </div>
      {changed && (
        <p className="dim">
          <Exact text={toSentence(changed.text)} />
        </p>
      )}
      <Warned server={name} />
      {rejected.length > 0 && (
        <Some
          title={count(rejected.length, 'rejected item')}
          rows={rejected.map((item) => `${item.kind} ${item.name}: ${item.reason}`)}
        />
      )}
      {instances?.users && instances.users.length > 0 && (
        <Some
          title={`${count(instances.users.length, 'user')} with an instance`}
          rows={instances.users.map(
            ({ user, tenant, state }) => `${user}${tenant === undefined ? '' : ` of ${tenant}`}: ${state}`,
          )}
        />
      )}
      {mayOperate ? (
        <Logs server={name} />
      ) : (
        <p className="dim">The log takes the role operator or approver, and no tenant.</p>
      )}
    </section>
  )
}

function Some({ title, rows }: { title: string; rows: readonly string[] }): ReactElement {
  const [shown, setShown] = useState(PAGE)
  return (
    <div className="part">
      <h2>{title}</h2>
      <ul className="notes">
        {rows.slice(0, shown).map((text, i) => (
          // They have no id, and their order does not change.
          <li key={i}>
            <Exact text={text} />
          </li>
        ))}
      </ul>
      {rows.length > shown && (
        <button type="button" className="more" onClick={() => setShown(shown + PAGE)}>
          {count(Math.min(PAGE, rows.length - shown), 'more row')}
        </button>
      )}
    </div>
  )
}

/** The person's own account at a server that wants one. */
function Connection({ server }: { server: string }): ReactElement | null {
  const { data } = useApi<ConnectionsBody>({ key: ['connections'], path: '/api/connections' })
  const own = data?.connections.find((row) => row.server === server)
  if (!own) return null
  return (
    <a href={linkTo('people', { open: OWN })}>
      {own.connected ? 'You have connected it' : 'You have not connected it'}
    </a>
  )
}

function Warned({ server }: { server: string }): ReactElement | null {
  const { data } = useApi<WarningsBody>({ key: ['warnings'], path: '/api/warnings', everyMs: 5 * REFRESH_MS })
  const own = (data?.warnings ?? []).filter(
    ({ path, tools }) =>
      path === `servers.${server}` ||
      path.startsWith(`servers.${server}.`) ||
      tools?.some((tool) => tool.startsWith(`${server}:`)) === true,
  )
  return own.length === 0 ? null : (
    <Some title={count(own.length, 'warning')} rows={own.map(({ text }) => toSentence(text))} />
  )
}

function Logs({ server }: { server: string }): ReactElement {
  const { data, error } = useApi<LogsBody>({
    key: ['logs', server],
    path: '/api/logs',
    parameters: { server, limit: LINES },
    everyMs: REFRESH_MS,
    isUnannounced: true,
  })
  return (
    <div className="part">
      <h2>Log</h2>
      {error && !data && <Failed error={error} />}
      {data && data.lines.length === 0 && <p className="dim">It has said nothing yet.</p>}
      {data && data.lines.length > 0 && (
        <div className="server-log" tabIndex={0} role="log" aria-label={`The log of ${server}`}>
          {data.lines.map(({ seq, wallMs, level, user, text }) => (
            <p key={seq} className={level}>
              <time dateTime={new Date(wallMs).toISOString()}>{formatTime(wallMs, Date.now())}</time> {level}{' '}
              {user !== undefined && <Exact text={`${user} `} />}
              <Exact text={text} />
            </p>
          ))}
        </div>
      )}
    </div>
  )
}

function Restart({ row: { name, instances } }: { row: ServerRow }): ReactElement {
  const client = useQueryClient()
  const dialog = useRef<HTMLDialogElement>(null)
  const restart = useMutation<RestartedBody, ApiError, string>({
    mutationFn: (server) => postJson(`/api/servers/${encodeURIComponent(server)}/restart`, {}),
    onSuccess: ({ replicas }) => replicas ?? dialog.current?.close(),
    onSettled: () => client.invalidateQueries({ queryKey: ['servers'] }),
  })
  return (
    <>
      <button
        type="button"
        onClick={() => {
          restart.reset()
          dialog.current?.showModal()
        }}
      >
        Restart…
      </button>
      <dialog ref={dialog} className="form-dialog call-dialog" aria-labelledby="restart-title">
        <h2 id="restart-title">
          Restart <Exact text={name} />
        </h2>
        <p>
          Its running calls end with an error{instances ? ', in the instances of all users' : ''}. It starts again at
          once, on every replica. The audit records your name.
        </p>
        {restart.error && (
          <p className="problem" role="alert">
            <Exact text={restart.error.message} />
          </p>
        )}
        {restart.data?.replicas && <Restarted replicas={restart.data.replicas} />}
        <div className="form-buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            {restart.data ? 'Close' : 'Cancel'}
          </button>
          {!restart.data && (
            <button type="button" className="reject" disabled={restart.isPending} onClick={() => restart.mutate(name)}>
              Restart now
            </button>
          )}
        </div>
      </dialog>
    </>
  )
}

/** Shows the answer of each replica. */
function Restarted({ replicas }: { replicas: NonNullable<RestartedBody['replicas']> }): ReactElement {
  return (
    <div role="status">
      <ul aria-label="Replicas">
        {replicas.map(({ id, problem }) => (
          <li key={id} className={problem === undefined ? undefined : 'problem'}>
            <Exact text={id} />: {problem === undefined ? 'restarted' : <Exact text={`not restarted: ${problem}`} />}
          </li>
        ))}
      </ul>
    </div>
  )
}
