import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactElement } from 'react'
import { type ApiError, deleteJson } from '../api.ts'
import { count, toSentence } from '../format.ts'
import { emptyReach, wordsOfForce, wordsOfReach, wordsOfTarget } from '../halts.ts'
import { useApi } from '../hooks.ts'
import type { HaltRow, HaltsBody } from '../wire.ts'
import { Exact, Phrase } from './exact.tsx'
import { Problem } from './form.tsx'
import { HaltDialogButton } from './halt-dialog.tsx'
import { Ago } from './when.tsx'

const REFRESH_MS = 3000

/**
 * Shows the halts on every page, with the button to add one. It is absent without halts if the person may not add one.
 */
export function Halts(): ReactElement | null {
  const halts = useApi<HaltsBody>({ key: ['halts'], path: '/api/halts', everyMs: REFRESH_MS })
  if (!halts.data) return null
  const { halts: rows, mayHalt } = halts.data
  if (rows.length === 0 && !mayHalt) return null
  return (
    <section className={rows.length > 0 ? 'strip halts' : 'halts'} aria-label="Halts">
      <div className="halts-head">
        {/* Always present, so that screen readers announce its changes. */}
        <p role="status">{rows.length === 0 ? 'Nothing is halted.' : count(rows.length, 'active halt')}</p>
        {mayHalt && <HaltDialogButton label="Halt…" className="reject" />}
      </div>
      {rows.length > 0 && (
        <ul>
          {rows.map((row) => (
            <Halted key={row.id} row={row} anchor={`halt-${row.id}`} />
          ))}
        </ul>
      )}
    </section>
  )
}

/** Shows one halt with the button that releases it. `anchor`: the id of that button, for the palette. */
export function Halted({ row, anchor }: { row: HaltRow; anchor?: string }): ReactElement {
  const client = useQueryClient()
  const release = useMutation<HaltRow, ApiError>({
    mutationFn: () => deleteJson(`/api/halts/${encodeURIComponent(row.id)}`),
    onSettled: () => client.invalidateQueries(),
  })
  const target = wordsOfTarget(row.target)
  const empty = emptyReach(row)
  return (
    <li>
      <div className="halts-what">
        <p>
          <b>
            Halted: <Exact text={target} />.
          </b>{' '}
          <Exact text={toSentence(row.reason)} />
        </p>
        <p className="halts-more">
          <Phrase before="By " text={row.by} after=", " className="strong" />
          <Ago ms={row.since} />.{' '}
          <Exact
            text={empty === undefined ? `Stops ${wordsOfReach(row.reach)} now.` : `It matches nothing now: ${empty}`}
          />
          {row.inForce && (
            <>
              {' '}
              <Exact text={wordsOfForce(row.inForce)} />
            </>
          )}
        </p>
        <Problem text={release.error?.message} />
      </div>
      {row.mayRelease && (
        <button type="button" id={anchor} disabled={release.isPending} onClick={() => release.mutate()}>
          Release<span className="unseen"> {target}</span>
        </button>
      )}
    </li>
  )
}
