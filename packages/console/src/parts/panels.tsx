import type { ReactElement, ReactNode } from 'react'
import type { ApiError } from '../api.ts'

/** What is coming, in its outline. */
export function Loading({ what }: { what: string }): ReactElement {
  return (
    <div className="loading" role="status">
      <span className="unseen">Loading {what}…</span>
      {[0, 1, 2, 3, 4, 5].map((line) => (
        <div key={line} className="outline" aria-hidden="true" />
      ))}
    </div>
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
