import { type ReactElement, useState } from 'react'
import { linkTo } from '../address.ts'
import { changedLines, diffLines } from '../line-diff.ts'
import { useApi, useChoices } from '../hooks.ts'
import { useRevisions } from '../troubles-query.ts'
import type { PolicyRevisionBody, PolicyRevisionRow } from '../wire.ts'
import type { Column } from './cells.tsx'
import { DiffBlock, Exact } from './exact.tsx'
import { Segmented } from './filters.tsx'
import { GoBack } from './go-back.tsx'
import { Empty, Failed, Loading, Pending } from './panels.tsx'
import { RowTable } from './row-table.tsx'
import { At } from './when.tsx'

const HOW: Readonly<Record<PolicyRevisionRow['through'], string>> = {
  start: 'when the gateway started',
  signal: 'reloaded by a signal',
  api: 'reloaded',
  host: 'reloaded by the host',
  publication: 'published by a replica',
  watch: 'the file changed',
  restore: 'went back',
}

/** Shows the policies that were in force, and one of them in full. */
export function Revisions(): ReactElement {
  const answer = useRevisions()
  const chosen = useChoices()('revision')
  const { data } = answer
  if (!data) return <Pending answer={answer} what="the revisions" />
  const { revisions, mayRestore } = data
  const at = revisions.findIndex(({ revision }) => `${revision}` === chosen)
  const [row, before] = at < 0 ? [] : [revisions[at], revisions[at + 1]]
  if (revisions.length === 0)
    return (
      <Empty title="No revisions yet">
        <p>A policy is listed here when it comes in force: at the start with a file, and after each reload.</p>
      </Empty>
    )
  return (
    <div className="stack loose">
      <RowTable
        label="Revisions"
        caption="The policies that were in force, the latest first"
        rows={revisions}
        keyOf={({ revision }) => revision}
        columns={COLUMNS}
      />
      {row && (
        <OneRevision
          key={row.revision}
          row={row}
          before={before}
          inForce={revisions.find(({ isInForce }) => isInForce)}
          mayRestore={mayRestore}
        />
      )}
      {chosen !== '' && !row && <Empty title={`Revision ${chosen} is not kept`} />}
    </div>
  )
}

const COLUMNS: readonly Column<PolicyRevisionRow>[] = [
  {
    name: 'Revision',
    cell: ({ revision, isInForce }) => (
      <>
        <a href={linkTo('policy', { view: 'revisions', revision: `${revision}` })}>Revision {revision}</a>
        {isInForce && <span className="sub">in force</span>}
      </>
    ),
  },
  { name: 'Since', cell: ({ at }) => <At at={at} /> },
  { name: 'By', cell: ({ by }) => (by === undefined ? <span className="dim">nobody</span> : <Exact text={by} />) },
  {
    name: 'How',
    cell: ({ through, restores }) => (restores === undefined ? HOW[through] : `went back to revision ${restores}`),
  },
]

interface OneRevisionProps {
  readonly row: PolicyRevisionRow
  readonly before: PolicyRevisionRow | undefined
  readonly inForce: PolicyRevisionRow | undefined
  readonly mayRestore: boolean
}

/** Shows what a revision changed, or how it differs from the one in force, and goes back to it. */
function OneRevision({ row, before, inForce, mayRestore }: OneRevisionProps): ReactElement {
  const [against, setAgainst] = useState<'before' | 'force'>(row.isInForce ? 'before' : 'force')
  const other = against === 'force' ? inForce : before
  return (
    <section className="stack loose" aria-label={`Revision ${row.revision}`}>
      <h2>Revision {row.revision}</h2>
      <Segmented
        label="Compared with"
        options={[
          ['force', 'with the one in force'],
          ['before', 'with the one before'],
        ]}
        value={against}
        apply={setAgainst}
      />
      {other === undefined || other.revision === row.revision ? (
        <p className="dim">
          {against === 'before' ? 'The revision before is not kept.' : 'This revision is the one in force.'}
        </p>
      ) : (
        <Difference from={other} to={row} />
      )}
      {mayRestore && !row.isInForce && <GoBack revision={row.revision} />}
    </section>
  )
}

function Difference({ from, to }: { from: PolicyRevisionRow; to: PolicyRevisionRow }): ReactElement {
  const [old, now] = [useText(from.revision), useText(to.revision)]
  const error = old.error ?? now.error
  if (error) return <Failed error={error} />
  if (!old.data || !now.data) return <Loading what="the texts" />
  if (old.data.text === now.data.text) return <p className="dim">There is no difference.</p>
  return (
    <>
      <p className="dim">
        From revision {from.revision} to revision {to.revision}:
      </p>
      <DiffBlock
        lines={changedLines(diffLines(old.data.text, now.data.text))}
        label={`From revision ${from.revision} to revision ${to.revision}`}
      />
    </>
  )
}

function useText(revision: number) {
  const answer = useApi<PolicyRevisionBody>({
    key: ['policy', 'revision', revision],
    path: `/api/policy/revisions/${revision}`,
  })
  // Placeholder data belongs to another revision.
  return { ...answer, data: answer.isPlaceholderData ? undefined : answer.data }
}
