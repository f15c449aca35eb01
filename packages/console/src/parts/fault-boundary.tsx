import { Component, type ReactElement, type ReactNode } from 'react'

/** Keeps a fault of one page from taking the others with it. A class, as React has no other way. */
export class FaultBoundary extends Component<{ children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false }

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true }
  }

  override render(): ReactNode {
    return this.state.hasFailed ? <Fault /> : this.props.children
  }
}

function Fault(): ReactElement {
  return (
    <div className="panel failed" role="alert">
      <p className="panel-title">This page has a fault</p>
      <p>The others still work. Nothing was changed by it.</p>
      <button type="button" onClick={() => location.reload()}>
        Load it again
      </button>
    </div>
  )
}
