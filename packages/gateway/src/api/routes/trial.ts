import { randomUUID } from 'node:crypto'
import type { Caller } from '@toolgate/core'
import { isObject, type JsonObject, kindOfId, whatWouldAllow } from '@toolgate/core/internal'
import type { CallPreview } from '@toolgate/core/toolset'
import { unwrapOutcome } from '@toolgate/mcp'
import { toBody } from '../agent.ts'
import { findCaller, type NamedCallers, WHOSE } from '../callers.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { invalidBody, itemId, type Parameter, parseQuery, readBody, type Route } from '../request.ts'
import { mayCall, ownAgent } from '../own-agent.ts'
import { placing, wouldAllowOf } from './policy.ts'
import { checkKnown } from './tools.ts'
import type { AgentCallBody, WhyInputBody } from '../wire.ts'

const FIELDS = ['tool', 'as', 'caller', 'app', 'input']
const MAX_BODY_BYTES = 1024 * 1024

interface Trial {
  readonly tool: string
  readonly app: string | undefined
  readonly input: JsonObject
  readonly name: string
  readonly caller: Caller
}

/**
 * `POST /api/why` with `{ tool, as | caller, app, input }`: what a call with this input would get now, and every reason. Runs
 * nothing, takes no limit, asks nobody, and leaves no record.
 */
export function whyInputRoute(deps: ApiDeps, callers: NamedCallers): Route {
  return async ({ query, person, request }) => {
    parseQuery(query, {})
    const { tool, app, input, name, caller } = await readTrial(request, person, callers)
    checkKnown(tool, { person, caller }, deps)
    const view = await deps.view(caller, app)
    const given = toInput(tool, input, deps, caller)
    const previewed = await view.preview({ tool, input: given })
    const { facts } = previewed
    const ways = whatWouldAllow(view, tool, { input: given, facts })
    return {
      tool,
      kind: kindOfId(tool),
      as: name,
      ...(app === undefined ? {} : { app }),
      outcome: outcomeOf(previewed),
      visible: view.has(tool),
      reasons: previewed.decision.reasons.map(placing(deps)),
      ...wouldAllowOf(ways, deps),
      ...(previewed.status === 'refused' ? { text: previewed.text } : {}),
    } satisfies WhyInputBody
  }
}

function outcomeOf(previewed: CallPreview): WhyInputBody['outcome'] {
  return previewed.status === 'refused' ? previewed.decision.outcome : previewed.status
}

/**
 * `POST /api/tool/call` with `{ tool, as, app, input }`: makes a call as an agent of the person's own user, with the rights of
 * that agent. It passes every check that the agent's call would pass.
 */
export function ownCallRoute(deps: ApiDeps, callers: NamedCallers): Route {
  return async ({ query, person, request }) => {
    parseQuery(query, {})
    const { tool, app, input, caller } = await readTrial(request, person, callers)
    if (!mayCall(person))
      throw new ApiFault('call_forbidden', 'A call takes a person with the role "operator" or "approver".')
    const callerNow = () => ownAgent(deps, { person, caller, app })
    const now = callerNow()
    if (!now) throw new ApiFault('call_forbidden', NOT_OWN)
    checkKnown(tool, { person, caller }, deps)
    const { agents } = deps
    if (!agents) throw new ApiFault('call_forbidden', 'No calls can be made here.')
    if (agents.isStopping())
      throw new ApiFault('stopping', 'The gateway is stopping. Try again in a moment.', { 'retry-after': '1' })
    const view = await agents.view(now, app)
    const outcome = await view.call({
      tool,
      input: toInput(tool, input, deps, caller),
      callId: `console-${randomUUID()}`,
      callerNow,
      signal: request.signal,
    })
    return toBody(unwrapOutcome(outcome), agents) satisfies AgentCallBody
  }
}

const NOT_OWN =
  'A person makes calls only as an agent of their own user: the file has no key of an agent with your user and tenant that has not expired and opens this.'

/** A resource is read by its URI alone. */
function toInput(id: string, input: JsonObject, { items }: ApiDeps, caller: Caller): JsonObject {
  if (kindOfId(id) !== 'resource' || Object.keys(input).length > 0) return input
  const { uri = id.split(':').slice(2).join(':') } = items?.(caller).find((item) => item.id === id) ?? {}
  return { uri }
}

/** @throws {ApiFault} */
async function readTrial(request: Request, person: Caller, callers: NamedCallers): Promise<Trial> {
  const body = await readBody(request, FIELDS, MAX_BODY_BYTES)
  const text = <T>(field: string, parse: Parameter<T>): T | undefined => {
    const value = body.get(field)
    if (value === undefined) return undefined
    if (typeof value !== 'string') throw invalidBody(`The field "${field}" must be a text.`)
    try {
      return parse(value)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      throw invalidBody(`The field "${field}" ${error.message}.`)
    }
  }
  const tool = text('tool', itemId)
  if (tool === undefined) throw invalidBody('The field "tool" is missing.')
  const input = body.get('input') ?? {}
  if (!isObject(input)) throw invalidBody('The field "input" must be an object.')
  const given = body.get('caller')
  const caller =
    given === undefined ? undefined : WHOSE.caller(typeof given === 'string' ? given : JSON.stringify(given))
  const found = findCaller(callers(), { as: text('as', WHOSE.as), caller }, person)
  return { tool, app: text('app', WHOSE.app), input, name: found.name, caller: found.caller }
}
