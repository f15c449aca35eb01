import type { GatewayAddress } from './target.ts'
import type { UsableKey } from './usable-key.ts'

/** The keys of a command, of which the first that the gateway knows is used. */
export class TriedKeys {
  readonly #target: Pick<GatewayAddress, 'isAlone' | 'say'>
  readonly #refused: UsableKey[] = []
  #left: readonly UsableKey[]
  #isSaid = false

  constructor(target: Pick<GatewayAddress, 'keys' | 'isAlone' | 'say'>) {
    this.#left = target.keys
    this.#target = target
  }

  /** Sends a request. A request whose key is unknown has done nothing, so it is sent again with the next key. */
  async send(request: (key: string | undefined) => Promise<Response>): Promise<Response> {
    const [used, ...others] = this.#left
    const response = await request(used?.key)
    if (response.status !== 401) {
      if (used) this.#introduce(used)
      return response
    }
    if (used === undefined || others.length === 0) return response
    await response.body?.cancel()
    this.#refused.push(used)
    this.#left = others
    return this.send(request)
  }

  /** Says once who the command is, and which keys the gateway does not know. */
  #introduce({ user, tenant, from }: UsableKey): void {
    if (this.#isSaid) return
    this.#isSaid = true
    const unknown = this.#refused.map((key) => key.from).join(', ')
    if (unknown === '' && (this.#target.isAlone || user === undefined)) return
    const who = user === undefined ? `with the key of ${from}` : `as ${nameOf({ user, tenant })} (key in ${from})`
    this.#target.say?.(unknown === '' ? who : `${who}; the gateway does not know the key in ${unknown}`)
  }
}

function nameOf({ user, tenant }: Pick<UsableKey, 'user' | 'tenant'>): string {
  return tenant === undefined ? `${user}` : `${user} of ${tenant}`
}
