import type { ReactElement } from 'react'
import { toPrettyJson } from '../exact-text.ts'
import { Exact } from './exact.tsx'

/** A value as it is, which can be scrolled with the keyboard too. */
export function JsonBlock({ value, label }: { value: unknown; label: string }): ReactElement {
  return (
    <pre className="json" tabIndex={0} role="region" aria-label={label} dir="ltr">
      <Exact text={toPrettyJson(value)} />
    </pre>
  )
}
