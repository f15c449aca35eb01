import { createEmitter, type Emitter, sha256Hex } from '@toolgate/values'
import { createKeyring, type EndedCallers, type Keyring } from './keyring.ts'
import type { ApprovalsConfig, GatewayConfig } from '../config/config.ts'
import type { ConfigPlaces, PolicySource } from '../config/places.ts'
import type { ConfigWarning } from '../config/problems.ts'

/** The sections that a reload replaces. */
export const RULES = [
  'policy',
  'callers',
  'limits',
  'grants',
  'groups',
  'aliases',
  'labels',
  'apps',
  'servers',
] as const

/** The part of a configuration that a reload replaces. */
export type Rules = Pick<GatewayConfig, (typeof RULES)[number]>

/** The part of `approvals` that a reload replaces. */
type Asking = Pick<ApprovalsConfig, 'notify' | 'wait'>

/** The part of a configuration that is read once, when the gateway starts. */
export type Settings = Omit<GatewayConfig, keyof Rules>

/** The rules of a gateway between two reloads. Each request reads the current revision once. */
export interface Revision extends Rules {
  /** A hash of the rules without secrets. Equal rules have equal ids. */
  readonly id: string
  /** Increases by one with each reload. */
  readonly number: number
  /** Likely mistakes in the file. */
  readonly warnings: readonly ConfigWarning[]
  /** The places of policies and clauses in the file. */
  readonly places: ConfigPlaces
  readonly policySource: PolicySource | undefined
  readonly asking: Asking
  /** The keys of the file. */
  readonly keyring: Keyring
}

/** Holds the current revision. A reload replaces it as a whole. */
export class Revisions {
  /** The current revision. Only {@link replace} changes it. */
  current: Revision
  readonly #ended: Emitter<[ended: EndedCallers]>

  /** @throws {ConfigError} for two callers with one key */
  constructor(config: GatewayConfig, onFault?: (error: unknown) => void) {
    this.#ended = createEmitter(onFault)
    this.current = toRevision(config, 1)
  }

  /** Calls the listener after credentials have ended or changed. */
  readonly onEnded = (listener: (ended: EndedCallers) => void): (() => void) => this.#ended.subscribe(listener)

  /** Returns the next revision, without replacing the current one. @throws {ConfigError} for two callers with one key */
  next(config: GatewayConfig): Revision {
    return toRevision(config, this.current.number + 1, this.current)
  }

  /** Replaces the current revision. */
  replace(next: Revision): void {
    this.current = next
  }

  /** Ends the sessions, logins and streams of callers. */
  end(callers: EndedCallers): void {
    if (callers.replaced.size > 0) this.#ended.emit(callers)
  }

  /** Returns a function that computes a value once for each revision. */
  derive<Value>(make: (revision: Revision) => Value): () => Value {
    let of: Revision | undefined
    let value: Value
    return () => {
      if (of !== this.current) {
        value = make(this.current)
        of = this.current
      }
      return value
    }
  }
}

/** @throws {ConfigError} for two callers with one key */
function toRevision(config: GatewayConfig, number: number, before?: Revision): Revision {
  const {
    policy,
    callers,
    limits,
    grants,
    groups,
    aliases,
    labels,
    apps,
    servers,
    secrets,
    warnings = [],
    places = new Map(),
    policySource,
    approvals,
  } = config
  const rules: Rules = {
    policy,
    callers,
    limits,
    groups,
    servers,
    ...(grants && { grants }),
    ...(aliases && { aliases }),
    ...(labels && { labels }),
    ...(apps && { apps }),
  }
  return Object.freeze({
    ...rules,
    id: idOf(rules, secrets),
    number,
    warnings,
    places,
    policySource,
    asking: toAsking(approvals),
    keyring: createKeyring(callers, before?.keyring),
  })
}

function toAsking({ notify, wait }: ApprovalsConfig = {}): Asking {
  return { ...(notify && { notify }), ...(wait && { wait }) }
}

/** Returns the part of `approvals` that needs a restart. */
export function withoutAsking(approvals: ApprovalsConfig | undefined): object {
  const { notify: _notify, wait: _wait, ...rest } = approvals ?? {}
  return rest
}

/** Returns the current configuration as plain data, in the form of a file. */
export function withRules(
  // These are the initial rules, which a reload may have removed.
  { grants: _grants, aliases: _aliases, labels: _labels, apps: _apps, ...settings }: Settings & Partial<Rules>,
  { policy, callers, limits, grants, groups, aliases, labels, apps, servers, places, policySource, asking }: Revision,
): GatewayConfig {
  return {
    ...settings,
    approvals: { ...withoutAsking(settings.approvals), ...asking },
    policy,
    callers,
    limits,
    groups,
    servers,
    places,
    policySource,
    ...(grants && { grants }),
    ...(aliases && { aliases }),
    ...(labels && { labels }),
    ...(apps && { apps }),
  }
}

const ID_LENGTH = 16
const SECRETS: ReadonlySet<string> = new Set(['keyHash', 'demoKey'])

/** Secrets are left out, as a short one could be guessed from a hash. */
function idOf(rules: Rules, secrets: readonly string[] = []): string {
  const text = JSON.stringify(rules, (key, value: unknown) => {
    if (SECRETS.has(key)) return undefined
    return value instanceof Map ? Object.fromEntries(value) : value
  })
  const shown = secrets.reduce((left, secret) => left.replaceAll(JSON.stringify(secret).slice(1, -1), ''), text)
  return sha256Hex(shown).slice(0, ID_LENGTH)
}
