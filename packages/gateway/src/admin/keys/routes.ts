import type { Answer } from '../../heart/route.ts'
import { type Caller, ConfigError } from '@toolgate/core'
import type { KeyRow } from '../../model/key-row.ts'
import type { NewKey } from '../../auth/made-key.ts'
import { maySee } from '../http/callers.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { isOperator } from '../http/may.ts'
import { recordChange } from '../http/record-change.ts'
import { ApiFault } from '../../model/faults.ts'
import { invalidBody, parseQuery, readBody, shortText } from '../http/request.ts'
import type { KeysBody, NewKeyBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'keys',
  open: (heart) => ({
    routes: [
      { method: 'GET', path: '/api/keys', by: 'person', answer: keysRoute(heart) },
      { method: 'POST', path: '/api/keys', by: 'person', answer: createKeyRoute(heart) },
      { method: 'DELETE', path: '/api/keys/:id', by: 'person', answer: revokeKeyRoute(heart) },
    ],
  }),
}

type KeysHeart = Pick<Heart, 'door' | 'gate' | 'stores' | 'clock'>

const FIELDS = ['for', 'user', 'tenant', 'like', 'apps', 'expiresAt', 'id']
const MAX_TEXT = 300

/**
 * `GET /api/keys?user=&tenant=`: the keys without their secrets. With a user, only the keys of this user in this
 * tenant, or without a tenant.
 */
function keysRoute({ door }: KeysHeart): Answer {
  return ({ person, query }) => {
    const { user, tenant } = parseQuery(query, { user: shortText, tenant: shortText })
    nameOperator(person)
    const seen = door.keys
      .list()
      .filter(
        (row) =>
          maySee(person, row) &&
          (user === undefined || row.user === user) &&
          (user === undefined && tenant === undefined ? true : row.tenant === tenant),
      )
    return { keys: seen } satisfies KeysBody
  }
}

/** `POST /api/keys`: makes a key. Only this answer contains it. */
function createKeyRoute(heart: KeysHeart): Answer {
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const asked = parseNewKey(await readBody(request, FIELDS))
    const by = nameOperator(person)
    checkMayMake(person, asked)
    const made = await safely(() => heart.door.keys.create(asked, person))
    const isOwn = asked.user === person.user && asked.tenant === person.tenant
    const whose = isOwn ? 'their own' : `made by ${by} for ${asked.user}`
    const detail = `${made.row.id} of ${asked.user} (${asked.for}), ${whose}`
    await recordChange(heart, 'key_created', { detail, by })
    return { ...made.row, key: made.key } satisfies NewKeyBody
  }
}

/** `DELETE /api/keys/<id>`: revokes a key. Everything that was opened with it ends before the answer. */
function revokeKeyRoute(heart: KeysHeart): Answer {
  return async ({ id, person, query }) => {
    parseQuery(query, {})
    const by = nameOperator(person)
    const row: KeyRow = await safely(() => heart.door.keys.revoke(id))
    await recordChange(heart, 'key_revoked', { detail: `${row.id} of ${row.user} (${row.for})`, by })
    return row
  }
}

function parseNewKey(body: ReadonlyMap<string, unknown>): NewKey {
  const text = (field: string) => {
    const value = body.get(field)
    if (value !== undefined && (typeof value !== 'string' || value === '' || value.length > MAX_TEXT))
      throw invalidBody(`The field "${field}" must be a text of 1 to ${MAX_TEXT} characters.`)
    return value
  }
  const [use, user, apps, expiresAt] = [text('for') ?? 'mcp', text('user'), body.get('apps'), body.get('expiresAt')]
  if (use !== 'mcp' && use !== 'console' && use !== 'host')
    throw invalidBody('The field "for" must be mcp, console or host.')
  if (user === undefined) throw invalidBody('The field "user" is missing.')
  if (apps !== undefined && !(Array.isArray(apps) && apps.length > 0 && apps.every((app) => typeof app === 'string')))
    throw invalidBody('The field "apps" must be a list of names.')
  if (expiresAt !== undefined && typeof expiresAt !== 'number')
    throw invalidBody('The field "expiresAt" must be milliseconds since 1970.')
  return { for: use, user, tenant: text('tenant'), like: text('like'), apps, expiresAt, id: text('id') }
}

/**
 * Returns the user of an operator. A key has all rights of its user, so only a person without a tenant may make one.
 */
function nameOperator(person: Caller): string {
  if (isOperator(person)) return person.user
  throw new ApiFault('key_forbidden', 'Keys take a person with the role "operator" or "approver" and no tenant.')
}

/** Rejects a console key for another person, with which somebody could approve in that person's name. */
function checkMayMake(person: Caller, asked: NewKey): void {
  if (asked.for === 'console' && (asked.user !== person.user || asked.tenant !== person.tenant))
    throw new ApiFault('key_forbidden', 'A console key can only be made by the person whose it is.')
}

async function safely<T>(change: () => Promise<T>): Promise<T> {
  try {
    return await change()
  } catch (error) {
    if (error instanceof ConfigError) throw invalidBody(`${error.path}: ${error.problem}.`)
    throw error
  }
}
