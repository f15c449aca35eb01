/** One line of the gateway's log. `detail` is not for callers. */
export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly server?: string
  /** The user whose instance of the server wrote the line. */
  readonly user?: string
  readonly detail?: string
}
