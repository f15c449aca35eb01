import { type ReactElement, type ReactNode, Component } from 'react'
import { ApiError } from '../api.ts'

interface PageHeadProps {
  readonly title: ReactNode
  readonly about?: ReactNode
  readonly children?: ReactNode
}

export function PageHead({ title, about, children }: PageHeadProps): ReactElement {
  return (
    <div className="page-head">
      <h1>{title}</h1>
      {about !== undefined && <p>{about}</p>}
      {children}
    </div>
  )
}

interface PendingProps {
  readonly answer: { readonly data: unknown; readonly error: Error | null; readonly refetch: () => unknown }
  /** The name of the fetched data. */
  readonly what: string
}

/** Shows a placeholder until the gateway answers, or the error. */
export function Pending({ answer: { data, error, refetch }, what }: PendingProps): ReactElement | null {
  if (data) return null
  return error ? <Failed error={error} retry={refetch} /> : <Loading what={what} />
}

/** A placeholder while something loads. */
export function Loading({ what }: { what: string }): ReactElement {
  return (
    <div className="stack loose loading" role="status">
      <span className="unseen">Loading {what}…</span>
      {[0, 1, 2, 3, 4, 5].map((line) => (
        <div key={line} className="outline" aria-hidden="true" />
      ))}
    </div>
  )
}

export function Empty({ title, children }: { title: string; children?: ReactNode }): ReactElement {
  return (
    <div className="panel">
      <p className="panel-title">{title}</p>
      {children}
    </div>
  )
}

/** An error with the gateway's message, and a button to try again. */
export function Failed({ error, retry }: { error: Error; retry?: () => unknown }): ReactElement {
  const isAnswered = error instanceof ApiError && error.status !== 0
  return (
    <Alert title={isAnswered ? 'The request failed' : 'No connection'}>
      <p>{error.message}</p>
      {retry && (
        <button type="button" onClick={() => void retry()}>
          Try again
        </button>
      )}
    </Alert>
  )
}

function Alert({ title, children }: { title: string; children: ReactNode }): ReactElement {
  return (
    <div className="panel failed" role="alert">
      <p className="panel-title">{title}</p>
      {children}
    </div>
  )
}

/** Limits an error to its page. React requires a class for this. */
export class FaultBoundary extends Component<{ children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false }

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true }
  }

  override render(): ReactNode {
    return this.state.hasFailed ? <Fault /> : this.props.children
  }
}

/** Shows that a part could not be loaded: the gateway no longer has its files, or cannot send them. */
export function NotLoaded(): ReactElement {
  return (
    <Reloadable
      title="This page could not be loaded"
      about="The gateway does not answer, or is of another version by now."
    />
  )
}

function Fault(): ReactElement {
  return <Reloadable title="This page has failed" about="Other pages still work. Nothing was changed." />
}

function Reloadable({ title, about }: { title: string; about: string }): ReactElement {
  return (
    <Alert title={title}>
      <p>{about}</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </Alert>
  )
}
