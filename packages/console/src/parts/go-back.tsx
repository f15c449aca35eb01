import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useRef } from 'react'
import { linkTo } from '../address.ts'
import { ApiError, deleteJson, postJson } from '../api.ts'
import { useRevisions } from '../troubles-query.ts'
import type { ReloadBody } from '../wire.ts'
import { announce } from './announcer.tsx'
import { Exact } from './exact.tsx'
import { Problem } from './form.tsx'
import { At } from './when.tsx'

const TIMEOUT_MS = 60_000

/** Shows what going back to a revision would change, and then goes back to it. */
export function GoBack({ revision }: { revision: number }): ReactElement {
  const client = useQueryClient()
  const result = useRef<HTMLDivElement>(null)
  const { data, error, isPending, mutate } = useMutation<ReloadBody, ApiError, object>({
    mutationFn: (how) => postJson(`/api/policy/revisions/${revision}`, how, { timeoutMs: TIMEOUT_MS }),
    onSuccess: async ({ isApplied }) => {
      if (!isApplied) return
      announce(`Went back to revision ${revision}`)
      // The button that had the focus is gone.
      result.current?.focus()
      await client.invalidateQueries()
    },
  })
  const ask = (how: object): void => {
    if (!isPending) mutate(how)
  }
  const preview = data?.isApplied === false ? data.preview : undefined
  return (
    <div className="stack">
      <div className="row actions">
        <button type="button" aria-disabled={isPending} onClick={() => ask({ dryRun: true })}>
          Go back to this one…
        </button>
        {preview !== undefined && (
          <button type="button" className="main" aria-disabled={isPending} onClick={() => ask({ preview })}>
            Go back to revision {revision}
          </button>
        )}
      </div>
      <div ref={result} className="stack" role="status" tabIndex={-1}>
        {data && <Changes body={data} />}
      </div>
      <Problem text={error?.message} />
    </div>
  )
}

/** Shows the changes of a policy, or of its preview: who gains and who loses which tools. */
function Changes({ body: { isApplied, text } }: { body: ReloadBody }): ReactElement {
  // The first line is the head, which the page words differently.
  const [, ...changes] = text
  return (
    <>
      <p className="strong">{isApplied ? 'It is in force.' : 'This would change:'}</p>
      <pre className="json" tabIndex={0} role="group" aria-label="Changes">
        <Exact text={changes.length === 0 ? 'Nobody gains or loses a tool.' : changes.join('\n')} />
      </pre>
      {isApplied && <a href={linkTo('live', { event: 'config_changed' })}>Its record</a>}
    </>
  )
}

/** Says that a restored policy applies in place of the policy of the file. It is empty without one. */
export function Restored(): ReactElement | null {
  const client = useQueryClient()
  const { data } = useRevisions()
  const release = useMutation<ReloadBody, ApiError>({
    mutationFn: () => deleteJson('/api/policy/restored'),
    onSuccess: () => announce("The file's policy applies"),
    onSettled: () => client.invalidateQueries(),
  })
  if (!data?.restored) return null
  const { revision, by, at } = data.restored
  return (
    <div className="panel restored" role="status">
      <p>
        <b>Revision {revision} applies in place of the policy of the file</b>
        {by !== undefined && (
          <>
            , restored by <Exact text={by} />
          </>
        )}
        , since <At at={at} />. It applies until the policy of the file changes.
      </p>
      {data.mayRestore && (
        <button type="button" disabled={release.isPending} onClick={() => release.mutate()}>
          Use the file’s policy
        </button>
      )}
      <Problem text={release.error?.message} />
    </div>
  )
}
