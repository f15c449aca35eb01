import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactElement } from 'react'
import { type ApiError, deleteJson } from '../api.ts'
import { useApi } from '../hooks.ts'
import type { Who } from '../people.ts'
import { announce } from './announcer.tsx'
import { Exact } from './exact.tsx'
import { Failed, Loading } from './panels.tsx'
import { RowTable } from './row-table.tsx'
import { Ago } from './when.tsx'
import type { ConnectionRow, ConnectionsBody } from '../wire.ts'

const REFRESH_MS = 5000

interface ConnectionsProps {
  /** Whose. Absent: those of the person who looks, who alone can connect something. */
  readonly of?: Who | undefined
}

/** The servers that want an account of their user, and what this user has connected. */
export function Connections({ of }: ConnectionsProps): ReactElement {
  const { data, error, refetch } = useApi<ConnectionsBody>({
    key: ['connections', of],
    path: '/api/connections',
    parameters: { user: of?.user, tenant: of?.tenant },
    everyMs: REFRESH_MS,
  })
  if (error && !data) return <Failed error={error} retry={refetch} />
  if (!data) return <Loading what="the connections" />
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
      columns={COLUMNS}
      actions="Change"
      className="keys connections"
    >
      {data.connections.map((row) => (
        <Row key={row.server} row={row} of={of} />
      ))}
    </RowTable>
  )
}

const COLUMNS = ['Server', 'Account', 'Scopes', 'Since'] as const

function Row({ row: { server, page, connected }, of }: ConnectionsProps & { row: ConnectionRow }): ReactElement {
  const { account, scopes = [], issuer, since } = connected ?? {}
  return (
    <tr>
      <th scope="row">
        <Exact text={server} className="id" />
      </th>
      <td data-label="Account">
        {connected ? (
          <Exact text={account ?? 'connected'} className="strong" />
        ) : (
          <span className="dim">not connected</span>
        )}
        {issuer !== undefined && (
          <span className="dim sub">
            at <Exact text={issuer} />
          </span>
        )}
      </td>
      <td data-label="Scopes">
        {scopes.length > 0 ? <Exact text={scopes.join(' ')} /> : <span className="dim">–</span>}
      </td>
      <td data-label="Since">{since === undefined ? <span className="dim">–</span> : <Ago ms={since} />}</td>
      <td className="act">
        {/* A page of its own: the browser goes on to the server's authorization server from there. */}
        {!of && (
          <a href={page}>
            {connected ? 'Connect again' : 'Connect'}
            <span className="unseen"> {server}</span>
          </a>
        )}
        {connected && <Disconnect server={server} of={of} />}
      </td>
    </tr>
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
      {disconnect.error && (
        <p className="problem" role="alert">
          {disconnect.error.message}
        </p>
      )}
    </>
  )
}

function queryOf({ user, tenant }: Who = {}): string {
  const query = new URLSearchParams()
  if (user !== undefined) query.set('user', user)
  if (tenant !== undefined) query.set('tenant', tenant)
  return query.size > 0 ? `?${query}` : ''
}
