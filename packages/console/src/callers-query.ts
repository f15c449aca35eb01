/** Selects callers. A gateway may have thousands, and counts the tools of each one that it sends. */
export interface CallersQuery {
  /** The name of one caller. */
  readonly as?: string
  /** A part of the name, tenant or a role. */
  readonly text?: string
  /** Only callers as which the person may make calls. */
  readonly own?: 'true'
  readonly limit?: number
}

/** Selects the caller whose view is shown. Without a name: the first one. */
export function callerOf(as: string): CallersQuery {
  return as === '' ? { limit: 1 } : { as }
}
