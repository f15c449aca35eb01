import type { ReactElement } from 'react'
import { useApi } from '../hooks.ts'
import type { SessionBody } from '../wire.ts'
import { Exact } from './exact.tsx'

/** Whether the person sees callers of several tenants. */
export function useManyTenants(): boolean {
  const { data } = useApi<SessionBody>({ key: ['session'], path: '/api/session' })
  return data?.manyTenants === true
}

/** The tenant of a caller, for people who see several. */
export function TenantTag({ tenant }: { tenant: string | undefined }): ReactElement | null {
  if (!useManyTenants() || tenant === undefined) return null
  return (
    <span className="tenant" title={`Of the tenant ${tenant}`}>
      <span className="unseen">of the tenant </span>
      <Exact text={tenant} />
    </span>
  )
}
