import type { Clock } from '@toolgate/core/stores'
import type { LogLevel } from './connection.ts'

export interface UpstreamLogLine {
  readonly level: LogLevel
  readonly server: string
  readonly message: string
  readonly detail?: string
  /** The user whose instance wrote the line. */
  readonly user?: string
}

/** One line about a server: its process wrote it to stderr, or the gateway logged it. */
interface ServerLogLine {
  /** Increases by one with each line of all servers. */
  readonly seq: number
  readonly wallMs: number
  /** `stderr`: the process wrote the line. */
  readonly level: UpstreamLogLine['level'] | 'stderr'
  /** The user whose instance wrote the line. */
  readonly user?: string
  readonly text: string
}

/** The message of a line that a child wrote to stderr. The detail is the line itself. */
export const STDERR = 'wrote to stderr'

const MAX_LINES = 500
const MAX_CHARS = 2_000

/** Keeps the latest log lines of each server in memory. */
export class ServerLogs {
  readonly #clock: Clock
  readonly #lines = new Map<string, ServerLogLine[]>()
  #seq = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns a log that keeps each line and passes it on, except for lines that children write to stderr. */
  keeping(log: (line: UpstreamLogLine) => void): (line: UpstreamLogLine) => void {
    return (line) => {
      this.#keep(line)
      if (line.message !== STDERR) log(line)
    }
  }

  /** Returns the latest `limit` lines of a server after `seq`, oldest first. Empty for an unknown server. */
  of(
    server: string,
    { after = 0, limit = MAX_LINES }: { after?: number; limit?: number } = {},
  ): readonly ServerLogLine[] {
    return (this.#lines.get(server) ?? []).filter(({ seq }) => seq > after).slice(-limit)
  }

  #keep({ server, level, message, detail, user }: UpstreamLogLine): void {
    const isStderr = message === STDERR
    const text = isStderr ? (detail ?? '') : detail ? `${message} (${detail})` : message
    const lines = this.#lines.get(server) ?? []
    this.#lines.set(server, lines)
    lines.push({
      seq: ++this.#seq,
      wallMs: this.#clock.wallMs(),
      level: isStderr ? 'stderr' : level,
      ...(user === undefined ? {} : { user }),
      text: text.slice(0, MAX_CHARS).toWellFormed(),
    })
    if (lines.length > MAX_LINES) lines.shift()
  }
}
