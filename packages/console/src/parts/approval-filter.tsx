import type { ReactElement } from 'react'
import type { FilterGrammar } from '../filter-text.ts'
import type { ApprovalRow } from '../wire.ts'
import { FilterBox, seenIn } from './filter-box.tsx'

const GRAMMAR: FilterGrammar = {
  keys: [
    { name: 'tool', about: 'the tool' },
    { name: 'user', about: 'who asks' },
    { name: 'tenant', about: 'the tenant' },
    { name: 'run', about: 'the run' },
  ],
  text: 'text',
}

/** The filter of the waiting requests. Words are searched in the tool, the user and the reason. */
export function ApprovalFilter({ approvals }: { approvals: readonly ApprovalRow[] }): ReactElement {
  return <FilterBox grammar={GRAMMAR} example="user:ann tool:pay:send" isEager seen={(key) => seenIn(approvals, key)} />
}
