import { createHash } from 'node:crypto'
import { type Caller, defineCaller, ToolgateError } from '@toolgate/core'
import { didYouMean } from '@toolgate/values'
import { mayApproveByDefault } from '@toolgate/core/call'
import * as z from 'zod'
import type { CallerConfig, GatewayConfig } from '../config.ts'
import type { ConfigPath } from '../problems.ts'
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

interface ApproverWarning {
  readonly code: 'approver_missing' | 'approver_idle'
  readonly at: ConfigPath
  readonly path: string
  readonly text: string
}

/** The settings that decide whether calls ask, and who can answer. */
export type AskingConfig = Pick<GatewayConfig, 'callers' | 'policy' | 'apps'>

/**
 * Returns warnings about agents whose requests no console key can decide, one for each tenant, and about approvers who
 * can decide no requests.
 *
 * Returns no warnings for a policy without `ask`, as it creates no requests.
 */
export function findApproverWarnings({ callers, policy, apps = [] }: AskingConfig): readonly ApproverWarning[] {
  const asks = [...policy, ...apps.flatMap((app) => app.policy)].some(({ ask = [] }) => ask.length > 0)
  if (!asks) return []
  const agents = callers.filter((one) => one.for === 'mcp')
  const people = callers.filter((one) => one.for === 'console')
  const warned = new Set<string | undefined>()
  return callers.flatMap(({ for: use, caller }, i): readonly ApproverWarning[] => {
    const place = { at: ['callers', i], path: `callers[${i}]` }
    if (use === 'host') return []
    if (use === 'mcp') {
      if (warned.has(caller.tenant) || people.some((person) => mayDecide(person.caller, caller))) return []
      warned.add(caller.tenant)
      return [{ code: 'approver_missing', ...place, text: missing(caller) }]
    }
    const isApprover = (caller.roles ?? []).includes('approver')
    if (!isApprover || agents.some((agent) => mayDecide(caller, agent.caller))) return []
    return [{ code: 'approver_idle', ...place, text: idle(caller) }]
  })
}

function mayDecide(person: Caller, agent: Caller): boolean {
  return mayApproveByDefault(person, { user: agent.user, tenant: agent.tenant })
}

function missing({ user, tenant }: Caller): string {
  const wanted = tenant === undefined ? 'and no tenant' : `and the tenant "${tenant}"`
  return `no console key can decide the requests of ${named(user)}, ${inTenant(tenant)}: add a caller with "for: console", the role "approver" ${wanted}`
}

function idle({ user, tenant }: Caller): string {
  return `${named(user)} has the role "approver" ${inTenant(tenant)}, and no agent is ${inTenant(tenant)}: there is nothing that this key can decide`
}

function named(user: string | undefined): string {
  return user === undefined ? 'a caller without a user' : `"${user}"`
}

function inTenant(tenant: string | undefined): string {
  return tenant === undefined ? 'without a tenant' : `in the tenant "${tenant}"`
}
