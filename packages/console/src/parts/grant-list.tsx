import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactElement } from 'react'
import { type ApiError, deleteJson } from '../api.ts'
import { writeDigits } from '../digits.ts'
import { plural, formatDuration } from '../format.ts'
import { useApi } from '../hooks.ts'
import type { GrantedField, GrantRow, GrantsBody } from '../wire.ts'
import { announce } from './announcer.tsx'
import { Exact, JsonBlock, Phrase } from './exact.tsx'
import { Problem } from './form.tsx'
import { Empty, Pending } from './panels.tsx'
import { TenantTag, useManyTenants } from './tenant-tag.tsx'
import { At } from './when.tsx'

const REFRESH_MS = 5000
const LIMIT = 200

/** Shows the live grants, newest first, each with what it lets happen. */
export function GrantList(): ReactElement {
  const answer = useApi<GrantsBody>({
    key: ['grants', 'live'],
    path: '/api/grants',
    parameters: { status: 'live', limit: LIMIT },
    everyMs: REFRESH_MS,
    isUnannounced: true,
  })
  const { grants = [], bounds } = answer.data ?? {}
  return (
    <section aria-labelledby="grants-title">
      <h2 id="grants-title" className="unseen">
        Live grants
      </h2>
      <Pending answer={answer} what="the grants" />
      {answer.data && grants.length === 0 && (
        <Empty title="No grant is live">
          {bounds ? (
            <p>
              Choose <em>Approve equal calls…</em> on a waiting request: further calls like it then run without a
              person, for at most {formatDuration(bounds.maxMs)} and {bounds.maxUses} calls.
            </p>
          ) : (
            <p>
              Grants are switched off. The section <code>grants</code> of the configuration switches them on.
            </p>
          )}
        </Empty>
      )}
      {grants.length > 0 && (
        <ul className="card grants">
          {grants.map((grant) => (
            <GrantItem key={grant.id} grant={grant} />
          ))}
        </ul>
      )}
      {grants.length === LIMIT && <p className="dim">These are the newest {LIMIT}.</p>}
    </section>
  )
}

function GrantItem({ grant }: { grant: GrantRow }): ReactElement {
  const { tool, user, tenant, uses, used, expiresAt, grantedBy, grantedAt, reason, run, anyRun, input, mayRevoke } =
    grant
  const isTagged = useManyTenants() && tenant !== undefined
  const left = uses - used
  return (
    <li className="stack tight">
      <div className="row loose">
        <p className="grow">
          <Exact text={user ?? 'nobody'} className="strong" />
          {isTagged && (
            <>
              {' '}
              <TenantTag tenant={tenant} />
            </>
          )}{' '}
          may call <Exact text={tool} className="id" /> <Exact text={coveredText(grant)} />, {left} more{' '}
          {plural(left, 'time')} (of {uses}) until <At at={expiresAt} />
          {run !== undefined && anyRun !== true && (
            <Phrase before=", in the run " text={run} after=" only" className="id" />
          )}
          .
        </p>
        {mayRevoke && <RevokeGrant grant={grant} />}
      </div>
      <p className="dim">
        Granted by <Exact text={grantedBy} /> <At at={grantedAt} />
        <Phrase before=": “" text={reason} after="”" />
      </p>
      {input !== undefined && (
        <details>
          <summary>What must be equal</summary>
          <JsonBlock value={input} label={`What must be equal for ${tool}`} />
        </details>
      )}
    </li>
  )
}

/** Returns what a grant covers: `with to = "bob@corp", amount from 0 to 200 and everything else as approved`. */
function coveredText({ covers, fields = {}, input }: Pick<GrantRow, 'covers' | 'fields' | 'input'>): string {
  if (covers === 'tool') return 'with any input'
  if (covers === 'input') return 'with exactly the approved input'
  const fixed = typeof input === 'object' && input !== null ? Object.entries(input).flatMap(fixedText) : []
  const parts = [...fixed.slice(0, MAX_FIXED), ...Object.entries(fields).map(fieldText)]
  return `with ${parts.join(', ')} and everything else as approved`
}

const MAX_FIXED = 4
const MAX_CHARS = 60

/** A field that stays equal, if it is short. The rest is below. */
function fixedText([name, value]: readonly [string, unknown]): readonly string[] {
  const text = typeof value === 'object' ? '' : writeDigits(value)
  return text === '' || text.length > MAX_CHARS ? [] : [`${name} = ${text}`]
}

function fieldText([pointer, field]: readonly [string, GrantedField]): string {
  const name = pointer.replace(/^\/(?=[^/]*$)/, '')
  return 'any' in field ? `any ${name}` : `${name} from ${field.from} to ${field.upTo}`
}

function RevokeGrant({ grant: { id, tool, user } }: { grant: GrantRow }): ReactElement {
  const client = useQueryClient()
  const revoke = useMutation<GrantRow, ApiError>({
    mutationFn: () => deleteJson(`/api/grants/${encodeURIComponent(id)}`),
    onSuccess: () => announce(`Revoked: the grant of ${tool}`),
    onSettled: () => client.invalidateQueries({ queryKey: ['grants'] }),
  })
  return (
    <span className="revoke">
      <button type="button" className="reject small" disabled={revoke.isPending} onClick={() => revoke.mutate()}>
        Revoke
        <span className="unseen">
          {' '}
          the grant of {tool} to {user}
        </span>
      </button>
      <Problem text={revoke.error?.message} />
    </span>
  )
}
