import { sha256Hex } from '@toolgate/core/internal'
import type { CredentialSource } from './auth/credential.ts'
import { createKeyring } from './auth/keyring.ts'
import type { GatewayConfig } from './config/config.ts'

const RULES = ['policy', 'callers', 'limits', 'groups', 'aliases', 'apps', 'servers'] as const

/** The part of a configuration that a reload replaces. */
export type Rules = Pick<GatewayConfig, (typeof RULES)[number]>

/** The part of a configuration that is read once, when the gateway starts. */
export type Settings = Omit<GatewayConfig, keyof Rules>

/** The rules of a gateway between two reloads. Everything that decides reads the current one once for each request. */
export interface Revision extends Rules {
  /** Hash of the rules without secrets: equal rules have equal ids. */
  readonly id: string
  /** Grows by one with each reload. */
  readonly number: number
  /** The keys of the file. */
  readonly keyring: CredentialSource
}

/** Holds the current revision, which is replaced as a whole. */
export class Revisions {
  #current: Revision

  /** @throws {ConfigError} for two callers with one key */
  constructor(config: GatewayConfig) {
    this.#current = toRevision(config, 1)
  }

  get current(): Revision {
    return this.#current
  }

  /** Returns a function that computes a value once for each revision. */
  derive<Value>(make: (revision: Revision) => Value): () => Value {
    let of: Revision | undefined
    let value: Value
    return () => {
      if (of !== this.#current) {
        value = make(this.#current)
        of = this.#current
      }
      return value
    }
  }
}

/** @throws {ConfigError} for two callers with one key */
export function toRevision(config: GatewayConfig, number: number): Revision {
  const { policy, callers, limits, groups, aliases, apps, servers, secrets } = config
  const rules: Rules = { policy, callers, limits, groups, servers, ...(aliases && { aliases }), ...(apps && { apps }) }
  return Object.freeze({ ...rules, id: idOf(rules, secrets), number, keyring: createKeyring(callers) })
}

const ID_LENGTH = 16
const SECRETS: ReadonlySet<string> = new Set(['keyHash', 'demoKey'])

/** Secrets are left out: somebody could guess a short one from a hash. */
function idOf(rules: Rules, secrets: readonly string[] = []): string {
  const text = JSON.stringify(rules, (key, value: unknown) => {
    if (SECRETS.has(key)) return undefined
    return value instanceof Map ? Object.fromEntries(value) : value
  })
  const shown = secrets.reduce((left, secret) => left.replaceAll(JSON.stringify(secret).slice(1, -1), ''), text)
  return sha256Hex(shown).slice(0, ID_LENGTH)
}

/** Returns the keys of the current revision. */
export function currentKeys(revisions: Revisions): CredentialSource {
  return {
    find: (bearer, resource) => revisions.current.keyring.find(bearer, resource),
    current: (id) => revisions.current.keyring.current(id),
  }
}
