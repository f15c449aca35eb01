import type { ReactElement, ReactNode } from 'react'
import type { ApiError } from '../api.ts'
import { formatTime } from '../format.ts'

export function Loading({ what }: { what: string }): ReactElement {
  return (
    <p className="panel loading" role="status">
      Loading {what}…
    </p>
  )
}

export function Empty({ title, children }: { title: string; children?: ReactNode }): ReactElement {
  return (
    <div className="panel empty">
      <p className="panel-title">{title}</p>
      {children}
    </div>
  )
}

/** What failed, in the gateway's own words, and a way to try again. */
export function Failed({ error, retry }: { error: ApiError; retry?: (() => unknown) | undefined }): ReactElement {
  return (
    <div className="panel failed" role="alert">
      <p className="panel-title">{error.status === 0 ? 'No connection' : 'That did not work'}</p>
      <p>{error.message}</p>
      {retry && (
        <button type="button" onClick={() => void retry()}>
          Try again
        </button>
      )}
    </div>
  )
}

/** Says that what is shown is from before, because the latest refresh failed. */
export function Stale({ error, sinceMs }: { error: ApiError; sinceMs: number }): ReactElement {
  return (
    <p className="stale" role="alert">
      Not refreshed since {formatTime(sinceMs, Date.now())}: {error.message}
    </p>
  )
}
