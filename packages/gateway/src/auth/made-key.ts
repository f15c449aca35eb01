import { type Caller, ConfigError } from '@toolgate/core'
import { callerKey } from '@toolgate/core/internal'
import { makersOf } from '@toolgate/core/call'
import { didYouMean } from '@toolgate/values'
import { isObject } from '@toolgate/values/json'
import type { CallerConfig } from '../config/config.ts'
import { KEY_ID } from '../config/schema/callers.ts'
import type { Revision } from './revision.ts'

/** The request for a new key. Its caller is the one that the configuration has for this user and use. */
export interface NewKey {
  readonly for: 'mcp' | 'console' | 'host'
  readonly user: string
  readonly tenant?: string | undefined
  /**
   * The id of the key in the file whose rights the new key gets. Required if the user has keys with different rights.
   */
  readonly like?: string | undefined
  readonly apps?: readonly string[] | undefined
  readonly expiresAt?: number | undefined
  /** Default: a random one. */
  readonly id?: string | undefined
}

/** A key that was made while the gateway ran. Only its hash is stored. */
export interface MadeKey extends Omit<NewKey, 'id'> {
  readonly id: string
  readonly hash: string
  readonly createdAt: number
  readonly createdBy: string | undefined
  /**
   * The people who made the credential behind the key, the nearest first. Absent if there are none, or for a row of an
   * earlier version.
   */
  readonly makers?: readonly string[] | undefined
}

type AskedKey = Pick<NewKey, 'for' | 'user' | 'tenant' | 'like'>

const HASH_LENGTH = 8
const MAX_LIFE_MS = 10 * 366 * 24 * 60 * 60 * 1000

/** Returns the id that people see. For a key of the file without an id, it is the start of the hash. */
export function idOf({ id, keyHash }: CallerConfig): string {
  return id ?? Buffer.from(keyHash).toString('hex').slice(0, HASH_LENGTH)
}

/**
 * Returns the keys of the file whose rights a made key has. All of them have the same rights. The list is empty if
 * there are none, or if several have different rights and the key does not name one. The made key then opens nothing.
 */
function sourcesOf(key: AskedKey, callers: readonly CallerConfig[]): readonly CallerConfig[] {
  const ofUser = callers.filter((one) => isOf(one, key))
  if (key.like !== undefined) return ofUser.filter((one) => idOf(one) === key.like)
  return new Set(ofUser.map(({ caller }) => callerKey(caller))).size === 1 ? ofUser : []
}

/** Returns the current rights of a made key, or `undefined` if its user or source was removed. */
export function toEntry(key: MadeKey, callers: readonly CallerConfig[]): CallerConfig | undefined {
  const sources = sourcesOf(key, callers)
  const [source] = sources
  if (!source) return undefined
  const { hash, for: use, expiresAt: expiresAtMs, id } = key
  const apps = narrowApps(key.apps, sources)
  return {
    keyHash: Buffer.from(hash, 'hex'),
    for: use,
    caller: withMakers(source.caller, [key.createdBy, ...(key.makers ?? [])]),
    id,
    ...(apps && { apps }),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
  }
}

/** Returns the apps of a made key: those it was made for, if a key of its user in the file still opens them. */
function narrowApps(
  made: readonly string[] | undefined,
  sources: readonly CallerConfig[],
): readonly string[] | undefined {
  if (sources.some(({ apps }) => !apps)) return made
  const opened = [...new Set(sources.flatMap(({ apps = [] }) => apps))]
  return made ? made.filter((app) => opened.includes(app)) : opened
}

/** Returns the makers of an object that a credential creates: its user, under all names, then everyone who made the credential. */
export function makersWith(by: Caller | undefined): readonly string[] {
  if (!by) return []
  const { user, aliases = [] } = by
  return [...new Set([...(user === undefined ? [] : [user]), ...aliases, ...makersOf(by)])]
}

/** Adds makers to a caller. Operators who make keys have no tenant. */
function withMakers(caller: Caller, by: readonly (string | undefined)[]): Caller {
  const isOwn = (one: string) => one === caller.user && caller.tenant === undefined
  const others = new Set(by.filter((one) => one !== undefined && !isOwn(one)) as string[])
  const [keyMadeBy, ...more] = others
  if (keyMadeBy === undefined) return caller
  return { ...caller, keyMadeBy, ...(more.length > 0 && { makerChain: [...others] }) }
}

function isOf({ for: use, caller }: CallerConfig, key: AskedKey): boolean {
  return use === key.for && caller.user === key.user && caller.tenant === key.tenant
}

/**
 * Checks that this person may make this key.
 *
 * @throws {ConfigError} naming the field
 */
export function checkNewKey(asked: NewKey, rules: Revision, now: number, by: Caller | undefined): void {
  const { for: use, apps = [], expiresAt, id } = asked
  const [source] = checkSources(asked, rules.callers, by)
  // A person with a narrow and a wide console key cannot use the narrow key to make a wide one.
  if (
    by &&
    use === 'console' &&
    !(includesAll(by.roles, source.caller.roles) && includesAll(by.scopes, source.caller.scopes))
  )
    throw new ConfigError('like', 'names a console key that may do more than the one you use')
  const served = (rules.apps ?? []).map(({ name }) => name)
  const unknown = apps.find((app) => !served.includes(app))
  if (unknown !== undefined) throw new ConfigError('apps', `no app is named "${unknown}"${didYouMean(unknown, served)}`)
  if (apps.length > 0 && use !== 'mcp') throw new ConfigError('apps', 'are for keys of agents only')
  if (id !== undefined && !KEY_ID.test(id))
    throw new ConfigError('id', 'has 1 to 64 letters, digits, ".", "_" and "-", and begins with a letter or digit')
  if (expiresAt !== undefined && !(expiresAt > now && expiresAt <= now + MAX_LIFE_MS))
    throw new ConfigError('expiresAt', 'must be in the future, and within ten years')
}

function checkSources(
  asked: NewKey,
  callers: readonly CallerConfig[],
  by: Caller | undefined,
): readonly [CallerConfig, ...CallerConfig[]] {
  const { for: use, user, tenant, like } = asked
  const ofUser = callers.filter((one) => isOf(one, asked))
  if (ofUser.length === 0) {
    const elsewhere = by && by.tenant === undefined ? tenantsOf(asked, callers) : []
    if (elsewhere.length > 0)
      throw new ConfigError(
        'tenant',
        `"${user}" exists in ${elsewhere.map((one) => (one === undefined ? 'no tenant' : `tenant "${one}"`)).join(' and ')}: name that as the tenant (--tenant)`,
      )
    const known = callers.filter((one) => one.for === use && one.caller.tenant === tenant)
    const names = known.flatMap(({ caller }) => caller.user ?? [])
    throw new ConfigError(
      'user',
      `no caller for "${use}" is "${user}"${didYouMean(user, names)}; add it to the file first`,
    )
  }
  const [source, ...more] = sourcesOf(asked, callers)
  if (source) return [source, ...more]
  const choices = ofUser.map((one) => `"${idOf(one)}" (roles: ${one.caller.roles?.join(', ') || 'none'})`).join(', ')
  if (like === undefined)
    throw new ConfigError('like', `is needed, as "${user}" has keys with different rights: ${choices}`)
  throw new ConfigError('like', `"${like}" is no key of "${user}" in the file; there are ${choices}`)
}

/** Returns the tenants in which the file has the user. People of a tenant must not learn of others. */
function tenantsOf({ for: use, user }: NewKey, callers: readonly CallerConfig[]): readonly (string | undefined)[] {
  const found = callers.filter((one) => one.for === use && one.caller.user === user)
  return [...new Set(found.map(({ caller }) => caller.tenant))]
}

function includesAll(all: readonly string[] = [], some: readonly string[] = []): boolean {
  return some.every((one) => all.includes(one))
}

/** Returns `undefined` for an entry that cannot be parsed. Such an entry opens nothing. */
export function toMadeKey(value: unknown): MadeKey | undefined {
  if (!isObject(value)) return undefined
  const { id, hash, for: use, user, tenant, like, apps, expiresAt, createdAt, createdBy, makers } = value
  const isUse = use === 'mcp' || use === 'console' || use === 'host'
  if (typeof id !== 'string' || typeof hash !== 'string' || !/^[0-9a-f]{64}$/.test(hash)) return undefined
  if (!isUse || typeof user !== 'string' || !isTextOrAbsent(tenant) || !isTextOrAbsent(like)) return undefined
  if ((apps !== undefined && !isTexts(apps)) || (makers !== undefined && !isTexts(makers))) return undefined
  if (expiresAt !== undefined && typeof expiresAt !== 'number') return undefined
  return {
    id,
    hash,
    for: use,
    user,
    tenant,
    like,
    apps,
    expiresAt,
    createdAt: typeof createdAt === 'number' ? createdAt : 0,
    createdBy: typeof createdBy === 'string' ? createdBy : undefined,
    ...(makers && { makers }),
  }
}

export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string')
}

function isTextOrAbsent(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string'
}
