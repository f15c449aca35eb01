import { type ReactElement, useContext } from 'react'
import { Session } from '../session.ts'
import { Exact } from './exact.tsx'

/** Whether the person sees callers of several tenants. */
export function useManyTenants(): boolean {
  return useContext(Session)?.manyTenants === true
}

/** Shows the tenant of a caller, to people who see several tenants. */
export function TenantTag({ tenant }: { tenant: string | undefined }): ReactElement | null {
  if (!useManyTenants() || tenant === undefined) return null
  return (
    <span className="tenant" title={`Of the tenant ${tenant}`}>
      <span className="unseen">of the tenant </span>
      <Exact text={tenant} />
    </span>
  )
}
