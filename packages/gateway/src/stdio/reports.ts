import type { UpstreamError } from '../model/upstream.ts'

/** Sentences that tell a person what to do. */
export interface BridgeHints {
  /** The hint if no gateway answers. */
  readonly start: string
  /** The hint if the gateway refuses the key. */
  readonly key: string
}

/** `refused`: the gateway accepted the key for no request. */
export type BridgeOutcome = 'served' | 'refused' | 'unreachable'

export interface ReportsOptions {
  readonly url: URL
  /** Writes one line for a person to the log of the client. */
  readonly log: (text: string) => void
  readonly hints: BridgeHints
}

/** Reports the state of the gateway. A person sees a problem once, until a request succeeds again. */
export class Reports {
  readonly #options: ReportsOptions
  #outcome: BridgeOutcome = 'unreachable'
  #lastLog = ''

  constructor(options: ReportsOptions) {
    this.#options = options
  }

  /** The best outcome so far. */
  get outcome(): BridgeOutcome {
    return this.#outcome
  }

  /** Records an answer of the gateway with this status. An event stream counts as an answer. */
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

  /** Records an error from the gateway, and returns the problem for the client. */
  refused(status: number, message: string): string {
    return this.problem(isKeyProblem(status) ? `${message} ${this.#options.hints.key}`.trim() : message)
  }

  /** Returns the problem text for an answer that is incomplete or does not come from a gateway. */
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
