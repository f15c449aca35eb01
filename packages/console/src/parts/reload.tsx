import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useRef } from 'react'
import { linkTo } from '../address.ts'
import { ApiError, postJson } from '../api.ts'
import { useApi } from '../hooks.ts'
import { toProblems } from '../policy.ts'
import type { PolicyBody, ReloadBody, ReloadRequestBody, ReplicasBody } from '../wire.ts'
import { announce } from './announcer.tsx'
import { Exact } from './exact.tsx'
import { PolicyProblems } from './policy-problems.tsx'

const RELOAD_TIMEOUT_MS = 60_000

/**
 * Shows the changes in the file, and then puts them into force. The console sends no policy text: only a person who can
 * write the file may change what the gateway runs, because a login here must not suffice to grant oneself access.
 */
export function Reload({ body }: { body: PolicyBody }): ReactElement {
  const result = useRef<HTMLDivElement>(null)
  // The button that had the focus is gone.
  const { data, error, isPending, mutate } = useReload(() => result.current?.focus())
  const isWaiting = data !== undefined && !data.isApplied && data.changes.length > 0
  const ask = (how: How): void => {
    if (!isPending) mutate(how)
  }
  return (
    <section className="stack loose apply" aria-label="Apply">
      <h2>Apply</h2>
      <ol className="stack tight">
        <li>
          Download the text, and replace the section <code>policy</code> with it in{' '}
          <Exact text={body.file ?? 'the file'} className="id" />, from line {body.line}. Only people who can write the
          file can change what the gateway runs.
        </li>
        <li>
          Check here what the file would change, then apply it: without a restart, and with a record. Or use{' '}
          <code>toolgate reload</code>.
        </li>
      </ol>
      <div className="row actions">
        <button type="button" aria-disabled={isPending} onClick={() => ask({ dryRun: true })}>
          Check the file
        </button>
        {isWaiting && (
          <button
            type="button"
            className="main"
            aria-disabled={isPending}
            onClick={() => ask(data.preview === undefined ? {} : { preview: data.preview })}
          >
            Apply the file
          </button>
        )}
      </div>
      <div ref={result} className="stack" role="status" tabIndex={-1}>
        {data && <Shown body={data} isWaiting={isWaiting} />}
      </div>
      <PolicyProblems problems={error ? toProblems(error.message) : []} />
    </section>
  )
}

type How = Pick<ReloadRequestBody, 'dryRun' | 'preview'>
/** `outdated`: the file changed after the person's preview, so nothing was applied. */
type Reloaded = ReloadBody & { readonly outdated?: string }

function useReload(onApplied: () => void) {
  const client = useQueryClient()
  const replicas = useApi<ReplicasBody>({ key: ['replicas'], path: '/api/replicas' })
  const publish = (replicas.data?.replicas.length ?? 0) > 0
  const post = (how: How) =>
    postJson<ReloadBody>('/api/reload', { ...how, ...(publish && { publish }) }, { timeoutMs: RELOAD_TIMEOUT_MS })
  return useMutation<Reloaded, ApiError, How>({
    mutationFn: async (how) => {
      try {
        return await post(how)
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'reload_outdated') throw error
        return { ...(await post({ dryRun: true })), outdated: error.message }
      }
    },
    onSuccess: ({ isApplied }) => {
      if (!isApplied) return undefined
      announce('Applied')
      onApplied()
      return client.invalidateQueries()
    },
  })
}

function Shown({ body, isWaiting }: { body: Reloaded; isWaiting: boolean }): ReactElement {
  const { outdated, isApplied, revision } = body
  // The first line is the head, which the page words differently.
  const [, ...changes] = body.text
  return (
    <>
      {outdated !== undefined && <p role="alert">{outdated}</p>}
      <p className="strong">
        {isApplied
          ? `Applied: revision ${revision.number}.`
          : isWaiting
            ? 'This would change:'
            : 'The file says what is in force.'}
      </p>
      {changes.length > 0 && (
        <pre className="json" tabIndex={0} role="group" aria-label="Changes">
          <Exact text={changes.join('\n')} />
        </pre>
      )}
      {isApplied && <a href={linkTo('live', { event: 'config_changed' })}>Its record</a>}
    </>
  )
}
