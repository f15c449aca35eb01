import { type Caller, ConfigError, type Halt, type Tool, ToolgateError } from '@toolgate/core'
import type { parseGroups } from '@toolgate/core/groups'
import { type HaltRequest, type HaltTarget, nearestOf } from '@toolgate/core/internal'
import { redactor } from '@toolgate/core/redact'
import { matchesSelector, parseSelector } from '@toolgate/core/toolset'
import type { ApiDeps, HaltDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { invalidBody, itemId, oneOf, parseQuery, readBody, type Route } from '../request.ts'
import type { HaltReach, HaltReachBody, HaltRow, HaltsBody } from '../wire.ts'
import type { CallerConfig } from '../../config/config.ts'

const TARGETS = ['user', 'session', 'tool', 'tenant'] as const
const FIELDS = [...TARGETS, 'all', 'reason', 'force']
const MAX_TARGET_LENGTH = 300
const ASKED = {
  user: itemId,
  session: itemId,
  tool: itemId,
  tenant: itemId,
  all: oneOf(['true'] as const),
}

/** `GET /api/halts`: newest first. */
export function haltsRoute(deps: ApiDeps): Route {
  const { halts } = deps
  return async ({ person, query }) => {
    parseQuery(query, {})
    const inForce = await readInForce(deps)
    const seen = (halts?.list() ?? []).filter((halt) => isWithin(person, halt)).toSorted((a, b) => b.at - a.at)
    return {
      halts: seen.map((halt) => ({ ...toRow(halt, person, deps), ...inForce(halt) })),
      mayHalt: halts !== undefined && mayHalt(person),
    } satisfies HaltsBody
  }
}

/** `GET /api/halts/reach?user=&session=&tool=&tenant=&all=true`: what a halt would stop, before it is set. */
export function haltReachRoute({ halts }: ApiDeps): Route {
  return ({ person, query }) => {
    const { all, ...asked } = parseQuery(query, ASKED)
    const { tenant } = nameOperator(person)
    const target = narrowTo(tenant, { ...asked, ...(all && { all: true }) })
    if (!halts) throw new ApiFault('halt_forbidden', 'Nothing can be halted here.')
    try {
      return { ...halts.reach(target), underWay: halts.underWay(target) } satisfies HaltReachBody
    } catch (error) {
      throw toHaltFault(error)
    }
  }
}

/** `POST /api/halts`: the halt is in effect before the response. */
export function haltRoute(deps: ApiDeps): Route {
  const { halts } = deps
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const body = await readBody(request, FIELDS)
    const isForced = parseForce(body.get('force'))
    const { reason, ...asked } = parseHalt(body)
    const { user: by, tenant } = nameOperator(person)
    const target = narrowTo(tenant, asked)
    if (!halts) throw new ApiFault('halt_forbidden', 'Nothing can be halted here.')
    try {
      checkStanding(person, target, halts)
      if (!isForced) checkReach(target, halts)
      const halt = await halts.halt({ ...target, reason, by, byTenant: tenant })
      return { ...toRow(halt, person, deps), ...(await readInForce(deps))(halt) }
    } catch (error) {
      throw toHaltFault(error)
    }
  }
}

/** `DELETE /api/halts/<id>` */
export function releaseRoute(deps: ApiDeps): Route {
  const { halts } = deps
  return async ({ id, person, query }) => {
    parseQuery(query, {})
    const { user: by } = nameOperator(person)
    const halt = halts?.list().find((one) => one.id === id && isWithin(person, one))
    // A person of a tenant must not learn whether another tenant has this halt.
    if (!halts || !halt) throw new ToolgateError('halt_unknown', 'Nothing is halted under that id.')
    if (!mayRelease(person, halt)) throw new ApiFault('halt_forbidden', SET_FROM_ABOVE)
    try {
      return toRow(await halts.release({ id, by }), person, deps)
    } catch (error) {
      if (error instanceof ToolgateError && error.code === 'state_unavailable')
        throw new ToolgateError(error.code, 'It is still halted: the state store did not take the release.', {
          cause: error,
        })
      throw error
    }
  }
}

/** Returns on which replicas each halt is in force. A database that does not answer keeps nobody from the halts. */
async function readInForce({ replica }: ApiDeps): Promise<(halt: Halt) => Pick<HaltRow, 'inForce'>> {
  const inForce = await replica?.inForce().catch(() => undefined)
  return ({ at }) => (inForce ? { inForce: inForce(at) } : {})
}

const SET_FROM_ABOVE = 'A person without a tenant set this halt, and only such a person may release it.'

function parseHalt(body: ReadonlyMap<string, unknown>): HaltRequest {
  for (const field of TARGETS) {
    const value = body.get(field)
    if (value !== undefined && (typeof value !== 'string' || value === '' || value.length > MAX_TARGET_LENGTH))
      throw invalidBody(`The field "${field}" must be a text of 1 to ${MAX_TARGET_LENGTH} characters.`)
  }
  // The gate checks which fields go together, and the reason.
  return Object.fromEntries([...body].filter(([name]) => name !== 'force')) as unknown as HaltRequest
}

function parseForce(force: unknown): boolean {
  if (force !== undefined && typeof force !== 'boolean') throw invalidBody('The field "force" must be true or false.')
  return force === true
}

/**
 * Refuses a halt that matches nothing now, as its name is probably misspelt.
 *
 * `all` cannot be misspelt, and the gateway does not know which sessions exist.
 *
 * @throws {ApiFault} `halt_empty`
 */
function checkReach(target: HaltTarget, halts: HaltDeps): void {
  const { tools, callers, nearestTool } = halts.reach(target)
  const near = nearestTool === undefined ? '' : ` Did you mean ${JSON.stringify(nearestTool)}?`
  const whom = [target.user, target.tenant].filter((name) => name !== undefined).map((name) => JSON.stringify(name))
  const problem =
    target.tool !== undefined && tools === 0
      ? `no tool is ${JSON.stringify(target.tool)}.${near}`
      : callers === 0
        ? `no configured agent is ${whom.join(' of ')}.`
        : undefined
  if (problem !== undefined)
    throw new ApiFault('halt_empty', `Nothing was halted: ${problem} To halt it anyway, force it.`)
}

/** The roles that may halt and release. */
const ROLES: ReadonlySet<string> = new Set(['approver', 'operator'])

function mayHalt({ user, roles = [] }: Caller): boolean {
  return user !== undefined && roles.some((role) => ROLES.has(role))
}

function nameOperator(person: Caller): { user: string; tenant: string | undefined } {
  const { user, tenant } = person
  if (user !== undefined && mayHalt(person)) return { user, tenant }
  throw new ApiFault('halt_forbidden', 'Halting and releasing take a person with the role "operator" or "approver".')
}

/** A halt by a person of a tenant covers that tenant only: `all` means all of the tenant. */
function narrowTo(own: string | undefined, { all, ...asked }: HaltTarget): HaltTarget {
  if (own === undefined) return all === undefined ? asked : { ...asked, all }
  if (asked.tenant !== undefined && asked.tenant !== own)
    throw new ApiFault('halt_forbidden', 'A person of a tenant halts within it only.')
  if (all === undefined) return Object.keys(asked).length === 0 ? asked : { ...asked, tenant: own }
  // With another field it is ambiguous, and the gate refuses it.
  return Object.keys(asked).length === 0 && all === true ? { tenant: own } : { ...asked, all }
}

function isWithin(person: Caller, { target }: Halt): boolean {
  return person.tenant === undefined || target.tenant === person.tenant
}

/** A person of a tenant cannot release a halt that a person without a tenant has set. */
function mayRelease(person: Caller, halt: Halt): boolean {
  return mayHalt(person) && isWithin(person, halt) && (person.tenant === undefined || halt.byTenant === person.tenant)
}

/** Halting the same target again would replace the halt, and its owner. */
function checkStanding(person: Caller, target: HaltTarget, halts: HaltDeps): void {
  const standing = halts.list().find((halt) => isSameTarget(halt.target, target))
  if (standing && !mayRelease(person, standing)) throw new ApiFault('halt_forbidden', SET_FROM_ABOVE)
}

function isSameTarget(a: HaltTarget, b: HaltTarget): boolean {
  return [...TARGETS, 'all' as const].every((field) => a[field] === b[field])
}

function toHaltFault(error: unknown): unknown {
  if (error instanceof ConfigError) return invalidBody(error.message)
  if (error instanceof ToolgateError && error.code === 'state_unavailable')
    return new ToolgateError(
      error.code,
      'It is halted here, but the state store did not take it: other replicas, and this one after a restart, do not know of it.',
      { cause: error },
    )
  return error
}

/** Redacts the reason, which may contain the leaked secret. */
function toRow(halt: Halt, person: Caller, { halts, redact = redactor }: ApiDeps): HaltRow {
  const { id, target, reason, by, at } = halt
  return {
    id,
    target,
    reason: redact.redactText(reason),
    ...(by === undefined ? {} : { by }),
    since: at,
    reach: halts?.reach(target) ?? { tools: 0 },
    mayRelease: mayRelease(person, halt),
  }
}

interface HaltWorld {
  readonly tools: readonly Tool[]
  readonly callers: readonly CallerConfig[]
  readonly groups: ReturnType<typeof parseGroups>['selectors']
}

/** Returns what a target matches now, so that people notice a misspelt name. */
export function haltReach({ tool, user, tenant }: HaltTarget, { tools, callers, groups }: HaltWorld): HaltReach {
  const selector = tool === undefined ? undefined : parseSelector(tool, groups)
  const named = selector ? tools.filter((one) => matchesSelector(selector, one, 'possible')) : tools
  const nearest =
    tool !== undefined && named.length === 0
      ? nearestOf(
          tool,
          tools.map(({ id }) => id),
        )
      : undefined
  const agents = callers.filter((one) => one.for === 'mcp')
  const isNamed = ({ caller }: CallerConfig) =>
    (user === undefined || caller.user === user) && (tenant === undefined || caller.tenant === tenant)
  return {
    tools: named.length,
    ...(nearest === undefined ? {} : { nearestTool: nearest }),
    ...(user === undefined && tenant === undefined ? {} : { callers: agents.filter(isNamed).length }),
  }
}
