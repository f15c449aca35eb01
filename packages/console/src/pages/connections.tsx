import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactElement } from 'react'
import { type ApiError, deleteJson } from '../api.ts'
import { useApi } from '../hooks.ts'
import { announce } from '../parts/announcer.tsx'
import { Exact } from '../parts/exact.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import { RowTable } from '../parts/row-table.tsx'
import { Ago } from '../parts/when.tsx'
import type { ConnectionRow, ConnectionsBody } from '../wire.ts'

const REFRESH_MS = 5000

/** The servers that want an account of their user, and what this person has connected. */
export function ConnectionsPage(): ReactElement {
  const { data, error, refetch } = useApi<ConnectionsBody>({
    key: ['connections'],
    path: '/api/connections',
    everyMs: REFRESH_MS,
  })
  return (
    <>
      <div className="page-head">
        <h1>Connections</h1>
        <p>Servers that you connect to your own account there. Only your calls act as that account.</p>
      </div>
      {error && !data && <Failed error={error} retry={refetch} />}
      {!data && !error && <Loading what="the connections" />}
      {data?.connections.length === 0 && (
        <Empty title="No server wants a connection">
          <p>
            One does with <code>oauth:</code> in its entry in toolgate.yaml.
          </p>
        </Empty>
      )}
      {data && data.connections.length > 0 && <ConnectionTable rows={data.connections} />}
    </>
  )
}

const COLUMNS = ['Server', 'Account', 'Scopes', 'Since'] as const

function ConnectionTable({ rows }: { rows: readonly ConnectionRow[] }): ReactElement {
  return (
    <RowTable
      label="The connections"
      caption="Servers, with your connections"
      columns={COLUMNS}
      actions="Change"
      className="keys connections"
    >
      {rows.map((row) => (
        <Row key={row.server} row={row} />
      ))}
    </RowTable>
  )
}

function Row({ row: { server, page, connected } }: { row: ConnectionRow }): ReactElement {
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
        <a href={page}>
          {connected ? 'Connect again' : 'Connect'}
          <span className="unseen"> {server}</span>
        </a>
        {connected && <Disconnect server={server} />}
      </td>
    </tr>
  )
}

function Disconnect({ server }: { server: string }): ReactElement {
  const client = useQueryClient()
  const disconnect = useMutation<ConnectionRow, ApiError>({
    mutationFn: () => deleteJson(`/api/connections/${encodeURIComponent(server)}`),
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
