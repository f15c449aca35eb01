import { isObject } from '@toolgate/values/json'
import { AskAll, type AskAllOptions, type ReplicaSays } from './ask-all.ts'

/** A replica that cannot do what was asked, and the reason. */
interface Objection {
  readonly id: string
  readonly why: string
}

/** Asks every live replica whether it could run a configuration, and answers the proposals of others. */
export class Proposals {
  readonly #all: AskAll

  constructor(options: AskAllOptions) {
    this.#all = new AskAll('proposed', options)
  }

  /** Returns the live replicas that cannot run a text, or do not answer. No replica changes its configuration. */
  async ask(text: string): Promise<readonly Objection[]> {
    return (await this.#all.ask({ text })).flatMap(toObjection)
  }

  /** Answers each proposal once. `check` rejects with the reason if this replica cannot run the proposed text. */
  follow(check: (text: string) => Promise<unknown>): () => void {
    return this.#all.follow(async (proposed) => check(textIn(proposed, 'text')))
  }
}

/** Restarts a server at every live replica. */
export class Restarts {
  readonly #all: AskAll

  constructor(options: AskAllOptions) {
    this.#all = new AskAll('restart', options)
  }

  /** Returns the live replicas, with the reason for each that did not restart the server. */
  async ask(server: string): Promise<readonly { readonly id: string; readonly problem?: string }[]> {
    return (await this.#all.ask({ server })).map((said) => {
      const [objection] = toObjection(said)
      return { id: said.id, ...(objection && { problem: objection.why }) }
    })
  }

  follow(restart: (server: string) => Promise<void>): () => void {
    return this.#all.follow(async (asked) => restart(textIn(asked, 'server')))
  }
}

function textIn(asked: unknown, field: string): string {
  const text = isObject(asked) ? asked[field] : undefined
  if (typeof text !== 'string') throw new Error('what is asked cannot be read')
  return text
}

function toObjection({ id, answer }: ReplicaSays): readonly Objection[] {
  if (answer === undefined) return [{ id, why: 'it does not answer' }]
  const why = isObject(answer) ? answer['why'] : 'its answer cannot be read'
  return typeof why === 'string' ? [{ id, why }] : []
}
