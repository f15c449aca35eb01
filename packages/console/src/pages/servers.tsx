import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useState } from 'react'
import { linkTo } from '../address.ts'
import { type ApiError, postJson } from '../api.ts'
import { count, instancesText, toSentence } from '../format.ts'
import { useApi, useChoices } from '../hooks.ts'
import { OWN } from '../people.ts'
import { ServerBadge } from '../parts/badges.tsx'
import { type Column, Opener } from '../parts/cells.tsx'
import { Drawer, Part } from '../parts/drawer.tsx'
import { Because, Exact } from '../parts/exact.tsx'
import { DialogButton, DialogButtons, Problem } from '../parts/form.tsx'
import { HaltButton } from '../parts/halt-dialog.tsx'
import { Empty, Failed, PageHead, Pending } from '../parts/panels.tsx'
import { RowTable } from '../parts/row-table.tsx'
import { Split } from '../parts/split.tsx'
import { At, Since } from '../parts/when.tsx'
import type { ConnectionsBody, LogsBody, RestartedBody, ServerRow, ServersBody, WarningsBody } from '../wire.ts'

const REFRESH_MS = 2000
const LINES = 200
/** The number of users or rejected items at first, and of those that each press adds. */
const PAGE = 50

/** Shows the servers behind the gateway: their state, their messages, and a button to restart them. */
export function ServersPage(): ReactElement {
  const name = useChoices()('server')
  const answer = useApi<ServersBody>({
    key: ['servers'],
    path: '/api/servers',
    everyMs: REFRESH_MS,
    isUnannounced: true,
  })
  const { data } = answer
  const chosen = data?.servers.find((row) => row.name === name)
  return (
    <>
      <PageHead
        title="Servers"
        about="The MCP servers behind this gateway: their state, their logs and their instances."
      />
      <Pending answer={answer} what="the servers" />
      {data && data.servers.length === 0 && (
        <Empty title="No servers">
          <p>
            Add one with <code>toolgate add NAME -- COMMAND</code>, or under <code>servers:</code> in toolgate.yaml.
          </p>
        </Empty>
      )}
      <Split
        choice="server"
        detail={
          data &&
          name !== '' && (
            <Drawer
              key={name}
              id={name}
              choice="server"
              title={<Exact text={name} className="id" />}
              beside={chosen && <ServerBadge status={chosen.status} />}
              isWide
              what="server"
              row={chosen}
              isUnknown
            >
              {(row) => <Details row={row} mayOperate={data.mayOperate === true} />}
            </Drawer>
          )
        }
      >
        {data && data.servers.length > 0 && (
          <RowTable
            label="The servers"
            caption="Servers, in the order of the file"
            rows={data.servers}
            keyOf={(row) => row.name}
            columns={COLUMNS}
            isOff={({ status }) => status === 'stopped'}
          />
        )}
      </Split>
    </>
  )
}

const COLUMNS: readonly Column<ServerRow>[] = [
  {
    name: 'Server',
    width: '22%',
    cell: ({ name }) => (
      <Opener id={name} choice="server" className="strong">
        <Exact text={name} className="id" />
      </Opener>
    ),
  },
  {
    name: 'State',
    cell: ({ status, since, reason }) => (
      <div>
        <ServerBadge status={status} /> <Since ms={since} />
        <Because reason={reason} />
      </div>
    ),
  },
  { name: 'Restarts', width: '5.5rem', isNumber: true, cell: ({ restarts }) => restarts },
  {
    name: 'Tools',
    width: '4.5rem',
    isNumber: true,
    cell: ({ name, toolCount }) => <a href={linkTo('tools', { q: `${name}:` })}>{toolCount}</a>,
  },
  {
    name: 'Instances',
    width: '24%',
    cell: ({ instances }) => (instances ? instancesText(instances) : 'shared by all'),
  },
]

function Details({ row, mayOperate }: { row: ServerRow; mayOperate: boolean }): ReactElement {
  const { name, era, rejected, instances, changed, may } = row
  return (
    <section className="stack sheet server-details" aria-label={`Server ${name}`}>
      <div className="row actions">
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
      {may && <p className="dim">May ask clients for: {may.join(', ')}.</p>}
      <Warned server={name} />
      {rejected.length > 0 && (
        <Some
          title={count(rejected.length, 'rejected item')}
          rows={rejected.map(
            ({ kind, name: item, part, reason }) => `${kind} ${item}${part ? ` ${part}` : ''}: ${reason}`,
          )}
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
    <Part title={title}>
      <ul className="stack tight notes">
        {rows.slice(0, shown).map((text, i) => (
          // The items have no id, and their order does not change.
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
    </Part>
  )
}

/** Shows the person's own account at a server that requires one. */
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
    <Part title="Log">
      {error && !data && <Failed error={error} />}
      {data && data.lines.length === 0 && <p className="dim">It has said nothing yet.</p>}
      {data && data.lines.length > 0 && (
        <div className="card server-log" tabIndex={0} role="log" aria-label={`The log of ${server}`}>
          {data.lines.map(({ seq, wallMs, level, user, text }) => (
            <p key={seq} className={level}>
              <At at={wallMs} /> {level} {user !== undefined && <Exact text={`${user} `} />}
              <Exact text={text} />
            </p>
          ))}
        </div>
      )}
    </Part>
  )
}

function Restart({ row: { name, instances } }: { row: ServerRow }): ReactElement {
  const client = useQueryClient()
  const restart = useMutation<RestartedBody, ApiError, string>({
    mutationFn: (server) => postJson(`/api/servers/${encodeURIComponent(server)}/restart`, {}),
    onSettled: () => client.invalidateQueries({ queryKey: ['servers'] }),
  })
  return (
    <DialogButton
      label="Restart…"
      onOpen={restart.reset}
      title={
        <>
          Restart <Exact text={name} />
        </>
      }
    >
      {(close) => (
        <div className="dialog-body">
          <p>
            Its running calls end with an error{instances ? ', in the instances of all users' : ''}. It starts again at
            once, on every replica. The audit records your name.
          </p>
          <Problem text={restart.error?.message} />
          {restart.data?.replicas && <Restarted replicas={restart.data.replicas} />}
          <DialogButtons cancel={restart.data ? 'Close' : 'Cancel'} close={close}>
            {!restart.data && (
              <button
                type="button"
                className="reject"
                disabled={restart.isPending}
                onClick={() => restart.mutate(name, { onSuccess: ({ replicas }) => replicas ?? close() })}
              >
                Restart now
              </button>
            )}
          </DialogButtons>
        </div>
      )}
    </DialogButton>
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
