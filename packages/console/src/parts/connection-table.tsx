import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactElement } from 'react'
import { type ApiError, deleteJson } from '../api.ts'
import { useApi } from '../hooks.ts'
import type { Who } from '../people.ts'
import { announce } from './announcer.tsx'
import { type Column, None } from './cells.tsx'
import { Exact } from './exact.tsx'
import { Problem } from './form.tsx'
import { Pending } from './panels.tsx'
import { RowTable } from './row-table.tsx'
import { Ago } from './when.tsx'
import type { ConnectionRow, ConnectionsBody } from '../wire.ts'

const REFRESH_MS = 5000

interface ConnectionsProps {
  /** The user. Absent for the logged-in person, who alone can connect an account. */
  readonly of?: Who | undefined
}

/** Shows the servers that require an account of their user, and the accounts that this user has connected. */
export function Connections({ of }: ConnectionsProps): ReactElement {
  const answer = useApi<ConnectionsBody>({
    key: ['connections', of],
    path: '/api/connections',
    parameters: { user: of?.user, tenant: of?.tenant },
    everyMs: REFRESH_MS,
  })
  const { data } = answer
  if (!data) return <Pending answer={answer} what="the connections" />
  if (data.connections.length === 0)
    return (
      <p className="dim">
        No server wants a connection. One does with <code>oauth:</code> in its entry in toolgate.yaml.
      </p>
    )
  return (
    <RowTable
      label="Connections"
      caption="Servers, with their connections"
      rows={data.connections}
      keyOf={({ server }) => server}
      columns={COLUMNS}
      actions={{ name: 'Change', cell: (row) => <Change row={row} of={of} /> }}
    />
  )
}

const COLUMNS: readonly Column<ConnectionRow>[] = [
  { name: 'Server', cell: ({ server }) => <Exact text={server} className="id" /> },
  {
    name: 'Account',
    cell: ({ connected }) => (
      <>
        {connected ? (
          <Exact text={connected.account ?? 'connected'} className="strong" />
        ) : (
          <span className="dim">not connected</span>
        )}
        {connected?.issuer !== undefined && (
          <span className="dim sub">
            at <Exact text={connected.issuer} />
          </span>
        )}
      </>
    ),
  },
  {
    name: 'Scopes',
    cell: ({ connected: { scopes = [] } = {} }) => (scopes.length > 0 ? <Exact text={scopes.join(' ')} /> : <None />),
  },
  {
    name: 'Since',
    width: '11%',
    cell: ({ connected: { since } = {} }) => (since === undefined ? <None /> : <Ago ms={since} />),
  },
]

function Change({ row: { server, page, connected }, of }: ConnectionsProps & { row: ConnectionRow }): ReactElement {
  return (
    <>
      {/* A page of its own: the browser goes on to the server's authorization server from there. */}
      {!of && (
        <a href={page}>
          {connected ? 'Connect again' : 'Connect'}
          <span className="unseen"> {server}</span>
        </a>
      )}
      {connected && <Disconnect server={server} of={of} />}
    </>
  )
}

function Disconnect({ server, of }: ConnectionsProps & { server: string }): ReactElement {
  const client = useQueryClient()
  const disconnect = useMutation<ConnectionRow, ApiError>({
    mutationFn: () => deleteJson(`/api/connections/${encodeURIComponent(server)}${queryOf(of)}`),
    onSuccess: () => announce(`Disconnected: ${server}`),
    onSettled: () => client.invalidateQueries({ queryKey: ['connections'] }),
  })
  return (
    <>
      <button type="button" disabled={disconnect.isPending} onClick={() => disconnect.mutate()}>
        Disconnect<span className="unseen"> {server}</span>
      </button>
      <Problem text={disconnect.error?.message} />
    </>
  )
}

function queryOf({ user, tenant }: Who = {}): string {
  const query = new URLSearchParams()
  if (user !== undefined) query.set('user', user)
  if (tenant !== undefined) query.set('tenant', tenant)
  return query.size > 0 ? `?${query}` : ''
}
