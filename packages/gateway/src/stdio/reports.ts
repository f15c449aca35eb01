import type { UpstreamError } from '../model/upstream.ts'

/** What to do, as sentences. */
export interface BridgeHints {
  /** If no gateway answers. */
  readonly start: string
  /** If the gateway refuses the key. */
  readonly key: string
}

/** `refused`: the gateway took the key for no request. */
export type BridgeOutcome = 'served' | 'refused' | 'unreachable'

export interface ReportsOptions {
  readonly url: URL
  /** Writes to the log of the client: one line for a person. */
  readonly log: (text: string) => void
  readonly hints: BridgeHints
}

/** What has happened with the gateway. A person is told of a problem once, until something works again. */
export class Reports {
  readonly #options: ReportsOptions
  #outcome: BridgeOutcome = 'unreachable'
  #lastLog = ''

  constructor(options: ReportsOptions) {
    this.#options = options
  }

  /** The best that has happened. */
  get outcome(): BridgeOutcome {
    return this.#outcome
  }

  /** The gateway answered with this status. An event stream is one, too. */
  reached(status: number = 200): void {
    if (!isKeyProblem(status)) {
      this.#outcome = 'served'
      this.#lastLog = ''
    } else if (this.#outcome === 'unreachable') this.#outcome = 'refused'
  }

  /** Returns the problem for the client. */
  unreached(error: UpstreamError): string {
    const { url, hints } = this.#options
    return this.problem(`The gateway at ${url.origin} ${error.message}. ${hints.start}`.trim())
  }

  /** The gateway answered with an error. */
  refused(status: number, message: string): string {
    return this.problem(isKeyProblem(status) ? `${message} ${this.#options.hints.key}`.trim() : message)
  }

  /** The answer is of no gateway, or only a part of one. */
  unreadable(status: number): string {
    const { origin } = this.#options.url
    return this.problem(
      status === 200
        ? `The gateway at ${origin} ended the answer too early.`
        : `Something that is not a Toolgate gateway answers at ${origin} (HTTP ${status}).`,
    )
  }

  problem(text: string): string {
    if (text !== this.#lastLog) this.#options.log(text)
    this.#lastLog = text
    return text
  }
}

function isKeyProblem(status: number): boolean {
  return status === 401 || status === 403
}
