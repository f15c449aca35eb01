import { type Caller, ConfigError, type Halt, type Tool, ToolgateError } from '@toolgate/core'
import type { parseGroups } from '@toolgate/core/groups'
import { type HaltRequest, type HaltTarget, nearestOf } from '@toolgate/core/internal'
import { redactor } from '@toolgate/core/redact'
import { matchesSelector, parseSelector } from '@toolgate/core/toolset'
import type { ApiDeps, HaltDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { invalidBody, parseQuery, readBody, type Route } from '../request.ts'
import type { HaltReach, HaltRow, HaltsBody } from '../wire.ts'
import type { CallerConfig } from '../../config/config.ts'

const TARGETS = ['user', 'session', 'tool', 'tenant'] as const
const FIELDS = [...TARGETS, 'all', 'reason', 'force']
const MAX_TARGET_LENGTH = 300

/** `GET /api/halts`: newest first. */
export function haltsRoute(deps: ApiDeps): Route {
  const { halts } = deps
  return ({ person, query }) => {
    parseQuery(query, {})
    const seen = (halts?.list() ?? []).filter((halt) => isWithin(person, halt)).toSorted((a, b) => b.at - a.at)
    return {
      halts: seen.map((halt) => toRow(halt, person, deps)),
      mayHalt: halts !== undefined && mayHalt(person),
    } satisfies HaltsBody
  }
}

/** `POST /api/halts`: in force when it answers, and before. */
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
      return toRow(await halts.halt({ ...target, reason, by, byTenant: tenant }), person, deps)
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
    // What is halted elsewhere is no business of a person of a tenant, nor whether it is.
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

const SET_FROM_ABOVE = 'It was halted by somebody who answers for all tenants, and only such a person may release it.'

function parseHalt(body: ReadonlyMap<string, unknown>): HaltRequest {
  for (const field of TARGETS) {
    const value = body.get(field)
    if (value !== undefined && (typeof value !== 'string' || value === '' || value.length > MAX_TARGET_LENGTH))
      throw invalidBody(`The field "${field}" must be a text of 1 to ${MAX_TARGET_LENGTH} characters.`)
  }
  // The rest is the gate's to say: which fields go together, and what a reason is.
  return Object.fromEntries([...body].filter(([name]) => name !== 'force')) as unknown as HaltRequest
}

function parseForce(force: unknown): boolean {
  if (force !== undefined && typeof force !== 'boolean') throw invalidBody('The field "force" must be true or false.')
  return force === true
}

/**
 * Refuses a halt whose name nothing has: a person in a hurry would think that something is stopped.
 *
 * `all` and sessions name nothing that could be misspelt or known.
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
    throw new ApiFault('halt_empty', `Nothing was halted: ${problem} To halt it for what comes later, force it.`)
}

/** The roles of those who answer for what runs. Stopping it and letting it go on are one trust. */
const ROLES: ReadonlySet<string> = new Set(['approver', 'operator'])

function mayHalt({ user, roles = [] }: Caller): boolean {
  return user !== undefined && roles.some((role) => ROLES.has(role))
}

function nameOperator(person: Caller): { user: string; tenant: string | undefined } {
  const { user, tenant } = person
  if (user !== undefined && mayHalt(person)) return { user, tenant }
  throw new ApiFault('halt_forbidden', 'Halting and releasing take a person with the role "operator" or "approver".')
}

/** A halt by a person of a tenant reaches that tenant only, whatever it names: `all` is all of the tenant. */
function narrowTo(own: string | undefined, { all, ...asked }: HaltTarget): HaltTarget {
  if (own === undefined) return all === undefined ? asked : { ...asked, all }
  if (asked.tenant !== undefined && asked.tenant !== own)
    throw new ApiFault('halt_forbidden', 'A person of a tenant halts within it only.')
  if (all === undefined) return Object.keys(asked).length === 0 ? asked : { ...asked, tenant: own }
  // Beside another field it could be meant either way; the gate says so.
  return Object.keys(asked).length === 0 && all === true ? { tenant: own } : { ...asked, all }
}

function isWithin(person: Caller, { target }: Halt): boolean {
  return person.tenant === undefined || target.tenant === person.tenant
}

/** Who answers for one tenant does not undo what somebody who answers for all has done. */
function mayRelease(person: Caller, halt: Halt): boolean {
  return mayHalt(person) && isWithin(person, halt) && (person.tenant === undefined || halt.byTenant === person.tenant)
}

/** The same halt again would replace the one there is, and make it this person's. */
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

/** A reason is any text, and a person in a hurry may put the very secret there that has leaked. */
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

/** Returns what a target names now, so that whoever halts in a hurry sees that a misspelt name halts nothing. */
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
