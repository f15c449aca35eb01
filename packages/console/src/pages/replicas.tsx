import type { ReactElement } from 'react'
import { toSentence } from '../format.ts'
import { useApi } from '../hooks.ts'
import { Exact } from '../parts/exact.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import { RowTable } from '../parts/row-table.tsx'
import { Ago } from '../parts/when.tsx'
import { differencesOf, wordOfReplica } from '../replicas.ts'
import type { ReplicaRowBody, ReplicasBody } from '../wire.ts'

const REFRESH_MS = 2000
const COLUMNS = ['Replica', 'State', 'Configuration', 'Running it since', 'Last sign of life'] as const

/** The gateways that share their stores: what each runs, and whether it takes calls. */
export function ReplicasPage(): ReactElement {
  const { data, error, refetch } = useApi<ReplicasBody>({
    key: ['replicas'],
    path: '/api/replicas',
    everyMs: REFRESH_MS,
  })
  return (
    <>
      <div className="page-head">
        <h1>Replicas</h1>
        <p>The gateways that share their stores, the configuration that each runs, and whether it takes calls.</p>
      </div>
      {error && !data && <Failed error={error} retry={refetch} />}
      {!data && !error && <Loading what="the replicas" />}
      {data && data.replicas.length === 0 && (
        <Empty title="No replicas">
          <p>This gateway runs alone: it shares its stores with no other gateway.</p>
        </Empty>
      )}
      {data && data.replicas.length > 0 && <ReplicaTable body={data} />}
    </>
  )
}

function ReplicaTable({ body }: { body: ReplicasBody }): ReactElement {
  const limits = body.self?.limits
  return (
    <>
      {limits !== undefined && (
        <p className="problem" role="alert">
          <Exact text={`Limited calls are refused: ${limits}.`} />
        </p>
      )}
      <RowTable label="The replicas" caption="Replicas, by their ids" columns={COLUMNS}>
        {body.replicas.map((row) => (
          <Row key={row.id} row={row} body={body} />
        ))}
      </RowTable>
    </>
  )
}

function Row({ row, body }: { row: ReplicaRowBody; body: ReplicasBody }): ReactElement {
  const { id, isLive, isSelf, url, version, refuses, configuration, renewedAt } = row
  return (
    <tr className={isLive ? undefined : 'off'}>
      <th scope="row">
        <Exact text={id} className="id" />
        <span className="dim sub">
          {isSelf && 'this one · '}
          {version}
          {url !== undefined && ` · ${url}`}
        </span>
      </th>
      <td data-label="State">
        <b>{wordOfReplica(row)}</b>
        {isLive && refuses !== undefined && (
          <span className="sub">
            <Exact text={toSentence(refuses)} />
          </span>
        )}
      </td>
      <td data-label="Configuration">
        <Exact text={configuration?.id ?? 'unknown'} className="id" />
        {differencesOf(row, body).map((text) => (
          <span key={text} className="sub">
            <Exact text={toSentence(text)} />
          </span>
        ))}
      </td>
      <td data-label="Running it since">{configuration && <Ago ms={configuration.since} />}</td>
      <td data-label="Last sign of life">
        <Ago ms={renewedAt} />
      </td>
    </tr>
  )
}
