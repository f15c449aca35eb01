import { createHash } from 'node:crypto'
import { type Caller, defineCaller, ToolgateError } from '@toolgate/core'
import { didYouMean } from '@toolgate/values'
import * as z from 'zod'
import type { CallerConfig } from '../config.ts'
import { checkShape, has, keysOf, readEach, type Reading } from '../reading.ts'
import { type CallerInput, callerSchema } from '../schema/callers.ts'
import type { Section } from '../section.ts'

const callersSchema = z.array(callerSchema).describe('Who may come, by API key.')

/** A repeated key is rejected, and so is a user who is repeated for the same use. */
export const callers: Section<readonly CallerConfig[]> = { schema: callersSchema, read: readCallers }

function readCallers(reading: Reading): readonly CallerConfig[] {
  const byKey = new Map<string, number>()
  const byUser = new Map<string, number>()
  const byId = new Map<string, number>()
  return readEach(reading.source, ['callers'], callersSchema, (at, place) => {
    const i = Number(place)
    const input = checkShape(reading.source, at, callerSchema)
    const caller = input && toCaller(reading, i, input)
    if (!caller) return undefined
    const key = Buffer.from(caller.keyHash).toString('hex')
    checkOnce(reading, byKey, key, i, input.key === undefined ? 'keyHash' : 'key', 'the same key')
    if (caller.id !== undefined) checkOnce(reading, byId, caller.id, i, 'id', `the id "${caller.id}"`)
    checkUser(reading, byUser, i, input)
    checkApps(reading, i, input)
    return caller
  })
}

function checkOnce(
  { source }: Reading,
  seen: Map<string, number>,
  id: string,
  i: number,
  key: string,
  what: string,
): void {
  const earlier = seen.get(id)
  if (earlier === undefined) seen.set(id, i)
  else source.report(['callers', i, key], `found ${what} as in callers[${earlier}], expected each once`)
}

/** If one user has several keys for one use, each key needs an id, so that people can distinguish the keys. */
function checkUser({ source }: Reading, seen: Map<string, number>, i: number, input: CallerInput): void {
  const { user, for: use = 'mcp', id } = input
  const name = `${use} ${user}`
  const earlier = seen.get(name)
  if (earlier === undefined) seen.set(name, i)
  else if (id === undefined || !has(source, ['callers', earlier, 'id']))
    source.report(
      ['callers', i, 'user'],
      `found the user "${user}" for "${use}" as in callers[${earlier}], expected an "id" for each of the two keys`,
    )
}

function checkApps({ source }: Reading, i: number, { apps = [], for: use = 'mcp' }: CallerInput): void {
  const known = keysOf(source, ['apps'])
  for (const [n, app] of apps.entries())
    if (!known.includes(app))
      source.report(['callers', i, 'apps', n], `found "${app}", expected an app${didYouMean(app, known)}`)
  if (apps.length > 0 && use !== 'mcp')
    source.report(['callers', i, 'apps'], `found apps for "${use}", expected them for agents only`)
}

function toCaller({ source }: Reading, i: number, input: CallerInput): CallerConfig | undefined {
  if ((input.key === undefined) === (input.keyHash === undefined)) {
    source.report(
      ['callers', i],
      `expected ${input.key === undefined ? '"key" or "keyHash"' : 'one of "key" and "keyHash", not both'}`,
    )
    return undefined
  }
  const { key, keyHash = '', for: use = 'mcp', id, expires, apps, ...fields } = input
  const caller = checkedCaller(fields, (message) => source.report(['callers', i, 'attributes'], message))
  if (!caller) return undefined
  const hash = key === undefined ? Buffer.from(keyHash.slice('sha256:'.length), 'hex') : sha256(key)
  return {
    // A `Uint8Array` instead of a `Buffer`, so that a copy in another thread is equal to it.
    keyHash: Uint8Array.from(hash),
    ...(key !== undefined && { demoKey: key }),
    for: use,
    caller,
    ...(id !== undefined && { id }),
    ...(apps !== undefined && { apps }),
    ...(expires !== undefined && { expiresAtMs: Date.parse(expires) }),
  }
}

function checkedCaller(fields: Caller, report: (message: string) => void): Caller | undefined {
  try {
    return defineCaller(fields)
  } catch (error) {
    if (!(error instanceof ToolgateError)) throw error
    report(error.message)
    return undefined
  }
}

function sha256(key: string): Uint8Array {
  return createHash('sha256').update(key, 'utf8').digest()
}
