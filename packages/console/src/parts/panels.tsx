import { type ReactElement, type ReactNode, Component } from 'react'
import type { ApiError } from '../api.ts'

/** A placeholder while something loads. */
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

/** An error with the gateway's message, and a button to try again. */
export function Failed({ error, retry }: { error: ApiError; retry?: (() => unknown) | undefined }): ReactElement {
  return (
    <div className="panel failed" role="alert">
      <p className="panel-title">{error.status === 0 ? 'No connection' : 'The request failed'}</p>
      <p>{error.message}</p>
      {retry && (
        <button type="button" onClick={() => void retry()}>
          Try again
        </button>
      )}
    </div>
  )
}

/** Keeps the error of one page from breaking the others. React requires a class for this. */
export class FaultBoundary extends Component<{ children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false }

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true }
  }

  override render(): ReactNode {
    return this.state.hasFailed ? <Fault /> : this.props.children
  }
}

/** A part whose files the gateway no longer has, or cannot send. */
export function NotLoaded(): ReactElement {
  return (
    <div className="panel failed" role="alert">
      <p className="panel-title">This page could not be loaded</p>
      <p>The gateway does not answer, or is of another version by now.</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </div>
  )
}

function Fault(): ReactElement {
  return (
    <div className="panel failed" role="alert">
      <p className="panel-title">This page has failed</p>
      <p>Other pages still work. Nothing was changed.</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </div>
  )
}
