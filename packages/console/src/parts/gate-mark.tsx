import type { ReactElement } from 'react'

/** The sign of Toolgate: an arch with bars. */
export function GateMark(): ReactElement {
  return (
    <svg className="gate-mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M8 25V14a8 8 0 0 1 16 0v11M13.300 25V12.800M18.700 25V12.800M6 25h20" />
    </svg>
  )
}
