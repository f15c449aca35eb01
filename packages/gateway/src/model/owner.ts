import { createHash } from 'node:crypto'
import type { Caller } from '@toolgate/core'

/** The user that an instance of a server belongs to. */
export interface Owner {
  /** The same for all callers who share an instance, and for no others. */
  readonly key: string
  /** The values of `${user}` and `${tenant}`, safe in file names, arguments and headers. */
  readonly user: string
  readonly tenant: string
  /** The name of the owner's folder. It is unique even on file systems that ignore case. */
  readonly folder: string
  /** The user's name as the caller has it, for people. */
  readonly name: string
  readonly ofTenant: string | undefined
}

const owners = new WeakMap<Caller, Owner>()

/**
 * Returns the owner of a caller's calls: the user in their tenant.
 *
 * A caller without a user is identified by its agent, or else by its session. `undefined` if it has none of these,
 * since such callers would share an instance.
 */
export function ownerOf(caller: Caller): Owner | undefined {
  const known = owners.get(caller)
  if (known) return known
  const { tenant, user, agent, session } = caller
  const [kind, name] = user ? ['user', user] : agent ? ['agent', agent] : ['session', session]
  if (!name) return undefined
  const key = JSON.stringify([kind, tenant ?? null, name])
  const owner: Owner = {
    key,
    // An agent may have the same name as a user.
    user: kind === 'user' ? encodeName(name) : `~${hashOf(key)}`,
    tenant: tenant === undefined ? '~' : encodeName(tenant),
    folder: `${encodeName(name).slice(0, FOLDER_LABEL)}~${hashOf(key)}`,
    name,
    ofTenant: tenant,
  }
  owners.set(caller, owner)
  return owner
}

/** The placeholder values of the listing instance, which belongs to no user. */
export const LISTING: Pick<Owner, 'user' | 'tenant' | 'folder'> = {
  user: '~listing',
  tenant: '~listing',
  folder: '~listing',
}

const FOLDER_LABEL = 24
/** The maximum length of an encoded name. A path segment has at most 255 bytes. */
const MAX_NAME = 100
const HASH_DIGITS = 20

/**
 * Returns a name with only letters, digits and `_.@-`. Everything else is encoded as `%XX` of its UTF-8.
 *
 * Different names have different results. A result is never `.` or `..`, never starts like an option or a file list,
 * and contains no separator. A long name ends with `~` and its hash; a `~` in the name is always encoded.
 *
 * @example
 * encodeName('../../x') // '%2E.%2F..%2Fx'
 */
export function encodeName(name: string): string {
  // Lone surrogates cannot be encoded in UTF-8.
  if (!name.isWellFormed()) return `~${hashOf(name)}`
  const encoded = [...Buffer.from(name)].map((byte, i) => encodeByte(byte, i === 0)).join('')
  return encoded.length > MAX_NAME ? `${encoded.slice(0, MAX_NAME)}~${hashOf(name)}` : encoded
}

function encodeByte(byte: number, isFirst: boolean): string {
  const char = String.fromCharCode(byte)
  const isSafe = isFirst ? /[A-Za-z0-9_]/.test(char) : /[A-Za-z0-9_.@-]/.test(char)
  return isSafe ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
}

function hashOf(text: string): string {
  return createHash('sha256').update(text, 'utf16le').digest('hex').slice(0, HASH_DIGITS)
}
