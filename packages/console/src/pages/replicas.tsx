import type { ReactElement } from 'react'
import { useApi } from '../hooks.ts'
import type { Column } from '../parts/cells.tsx'
import { Because, Exact } from '../parts/exact.tsx'
import { Problem } from '../parts/form.tsx'
import { Empty, PageHead, Pending } from '../parts/panels.tsx'
import { RowTable } from '../parts/row-table.tsx'
import { Ago } from '../parts/when.tsx'
import { differencesOf, wordOfReplica } from '../replicas.ts'
import type { ReplicaRowBody, ReplicasBody } from '../wire.ts'

const REFRESH_MS = 2000

/** Shows the gateways that share their stores: each one's configuration, and whether it accepts calls. */
export function ReplicasPage(): ReactElement {
  const answer = useApi<ReplicasBody>({ key: ['replicas'], path: '/api/replicas', everyMs: REFRESH_MS })
  const { data } = answer
  return (
    <>
      <PageHead
        title="Replicas"
        about="The gateways that share their stores, the configuration that each runs, and whether it takes calls."
      />
      <Pending answer={answer} what="the replicas" />
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
      <Problem text={limits && `Limited calls are refused: ${limits}.`} />
      <RowTable
        label="The replicas"
        caption="Replicas, by their ids"
        rows={body.replicas}
        keyOf={({ id }) => id}
        columns={columnsOf(body)}
        isOff={({ isLive }) => !isLive}
      />
    </>
  )
}

function columnsOf(body: ReplicasBody): readonly Column<ReplicaRowBody>[] {
  return [
    {
      name: 'Replica',
      cell: ({ id, isSelf, version, url }) => (
        <>
          <Exact text={id} className="id" />
          <span className="dim sub">
            {isSelf && 'this one · '}
            {version}
            {url !== undefined && ` · ${url}`}
          </span>
        </>
      ),
    },
    {
      name: 'State',
      cell: (row) => (
        <>
          <b>{wordOfReplica(row)}</b>
          {row.isLive && <Because reason={row.refuses} />}
        </>
      ),
    },
    {
      name: 'Configuration',
      cell: (row) => (
        <>
          <Exact text={row.configuration?.id ?? 'unknown'} className="id" />
          {differencesOf(row, body).map((text) => (
            <Because key={text} reason={text} />
          ))}
        </>
      ),
    },
    {
      name: 'Running it since',
      width: '11%',
      cell: ({ configuration }) => configuration && <Ago ms={configuration.since} />,
    },
    { name: 'Last sign of life', width: '15rem', cell: ({ renewedAt }) => <Ago ms={renewedAt} /> },
  ]
}
