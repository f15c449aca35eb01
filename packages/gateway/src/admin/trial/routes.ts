import type { Answer } from '../../heart/route.ts'
import { randomUUID } from 'node:crypto'
import type { Caller } from '@toolgate/core'
import { checkHistory, dryRun } from '@toolgate/change/internal'
import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import { kindOfId } from '@toolgate/core/tools'
import { mayStillNow } from '@toolgate/core/call'
import type { CallPreview } from '@toolgate/core/toolset'
import { unwrapOutcome } from '@toolgate/mcp'
import { toBody } from '../http/call-body.ts'
import { createNamedCallers, findCaller, type NamedCallers, WHOSE } from '../http/callers.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import type { FindSubject } from '../../heart/route.ts'
import { preparedViews } from '../../heart/views.ts'
import { approvalUrl } from '../../calls/approval-doors.ts'
import { policy } from '../policy/start.ts'
import { room as tools } from '../tools/routes.ts'
import { ApiFault } from '../../model/faults.ts'
import { invalidBody, itemId, type Parameter, parseField, parseQuery, readBody } from '../http/request.ts'
import { mayCall, ownAgent } from '../http/own-agent.ts'
import { mayStillOf, type PlacedRules, placing, wouldAllowOf } from '../policy/placed.ts'
import { readHistory } from '../http/read-history.ts'
import { checkKnown, knownItems } from '../tools/shown.ts'
import type { AgentCallBody, RolesFrom, WhyInputBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'trial',
  needs: [policy, tools],
  open(heart, rooms) {
    const callers = createNamedCallers(() => heart.revisions.current.callers, heart.door.people)
    const deps: TrialDeps = { ...heart, callers, hits: rooms.ask(policy) }
    const subject = triedIn(deps)
    const by = 'person'
    return {
      routes: [
        { method: 'POST', path: '/api/why', by, answer: whyInputRoute(deps), subject },
        { method: 'POST', path: '/api/tool/call', by, answer: ownCallRoute(deps), subject },
      ],
    }
  },
}

interface TrialDeps extends Pick<Heart, 'gate' | 'servers' | 'catalog' | 'door' | 'redact'>, PlacedRules {
  readonly callers: NamedCallers
}

const FIELDS = ['tool', 'as', 'caller', 'app', 'input']
/** The maximum number of concurrent requests, as each may have a body of the maximum size. */
const MAX_DRY_RUNS = 16
const MAX_BODY_BYTES = 1024 * 1024

interface Trial {
  readonly tool: string
  readonly app: string | undefined
  readonly input: JsonObject
  readonly name: string
  readonly caller: Caller
  /** The history as it was sent, unchecked. */
  readonly history: unknown
  readonly rolesFrom: RolesFrom | undefined
}

/**
 * `POST /api/why` with `{ tool, as | caller, app, input, history }`: the decision that a call with this input would get
 * now, or after the given history, with every reason. It runs nothing, counts towards no limit, asks nobody, and leaves
 * no record or history.
 */
function whyInputRoute(deps: TrialDeps): Answer {
  let running = 0
  return async ({ query, person, request }) => {
    parseQuery(query, {})
    if (running >= MAX_DRY_RUNS)
      throw new ApiFault('dry_run_busy', 'Too many dry runs are asked for at once; ask again in a moment.')
    running++
    try {
      return await dryRunOf(deps, await readTrial(request, person, deps.callers, [...FIELDS, 'history']), person)
    } finally {
      running--
    }
  }
}

async function dryRunOf(deps: TrialDeps, trial: Trial, person: Caller): Promise<WhyInputBody> {
  const { tool, app, input, name, caller, rolesFrom, history } = trial
  checkKnown(tool, { person, caller }, deps)
  const view = await deps.gate.view(caller, { app })
  const items = history === undefined ? [] : knownItems(person, caller, deps)
  const stated = history === undefined ? undefined : readHistory(history, (given) => checkHistory(view, given, items))
  const asked = { tool, input: toInput(tool, input, deps, caller), history: stated, items }
  const { preview, answers, shadow, ways } = await dryRun(view, asked)
  const placed = await placing(deps, person, [...preview.decision.reasons, ...(shadow?.reasons ?? [])])
  return {
    tool,
    kind: kindOfId(tool),
    as: name,
    ...(rolesFrom && { rolesFrom }),
    ...(app === undefined ? {} : { app }),
    outcome: outcomeOf(preview),
    ...grantOf(preview),
    visible: view.has(tool),
    reasons: preview.decision.reasons.map(placed),
    answers,
    ...(preview.status === 'refused'
      ? {}
      : await mayStillOf(
          await mayStillNow(view, tool, { known: stated === undefined ? ['input'] : ['input', 'run'] }),
          deps,
          person,
        )),
    ...(shadow && { shadow: { outcome: shadow.outcome, reasons: shadow.reasons.map(placed) } }),
    ...wouldAllowOf(ways, deps, person),
    ...(preview.status === 'refused' ? { text: preview.text } : {}),
  }
}

function grantOf(previewed: CallPreview): Pick<WhyInputBody, 'grant'> {
  if (previewed.status === 'refused' || !previewed.grant) return {}
  const { id, grantedBy, expiresAt, uses, used } = previewed.grant
  return { grant: { id, grantedBy, expiresAt, uses, used } }
}

function outcomeOf(previewed: CallPreview): WhyInputBody['outcome'] {
  return previewed.status === 'refused' ? previewed.decision.outcome : previewed.status
}

/**
 * `POST /api/tool/call` with `{ tool, as, app, input }`: makes a call as an agent of the person's own user, with that
 * agent's rights. The call passes the same checks as a call of the agent.
 */
function ownCallRoute(deps: TrialDeps): Answer {
  const viewOf = preparedViews(deps)
  return async ({ query, person, request }) => {
    parseQuery(query, {})
    const { tool, app, input, caller } = await readTrial(request, person, deps.callers)
    if (!mayCall(person))
      throw new ApiFault('call_forbidden', 'A call takes a person with the role "operator" or "approver".')
    const keyNow = () => ownAgent(deps, { person, caller, app })
    const key = keyNow()
    if (!key) throw new ApiFault('call_forbidden', NOT_OWN)
    checkKnown(tool, { person, caller }, deps)
    if (deps.door.stopping.isStopping)
      throw new ApiFault('stopping', 'The gateway is stopping. Try again in a moment.', { 'retry-after': '1' })
    const view = await viewOf(key.caller, app)
    const outcome = await view.call({
      tool,
      input: toInput(tool, input, deps, caller),
      callId: `console-${randomUUID()}`,
      callerNow: () => keyNow()?.caller,
      asker: Buffer.from(key.keyHash).toString('hex'),
      signal: request.signal,
    })
    return toBody(unwrapOutcome(outcome), ({ id: approval }) =>
      approvalUrl(approval, deps.door.publicUrl),
    ) satisfies AgentCallBody
  }
}

const NOT_OWN =
  'A person makes calls only as an agent of their own user: the file has no key of an agent with your user and tenant that has not expired and opens this.'

/** Returns the input of a call. The only input of a resource is its URI. */
function toInput(id: string, input: JsonObject, { gate }: TrialDeps, caller: Caller): JsonObject {
  if (kindOfId(id) !== 'resource' || Object.keys(input).length > 0) return input
  const { uri = id.split(':').slice(2).join(':') } =
    gate.catalog.of(caller).items.tools.find((item) => item.id === id) ?? {}
  return { uri }
}

/** Returns the caller for whom a person tries a call. The replica that is this caller's home answers. */
function triedIn(deps: TrialDeps): FindSubject {
  return async ({ request, person, readText }) => {
    const { tool, caller, app } = await readTrialText(await readText(), person, deps.callers)
    if (new URL(request.url).pathname === '/api/why') return { tool, caller }
    return mayCall(person) && ownAgent(deps, { person, caller, app }) ? { tool, caller, isCall: true } : undefined
  }
}

/** Parses a body before it is known which replica answers. @throws {ApiFault} */
async function readTrialText(text: string, person: Caller, callers: NamedCallers): Promise<Trial> {
  const request = new Request('http://gateway', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: text,
  })
  return readTrial(request, person, callers, [...FIELDS, 'history'])
}

/** @throws {ApiFault} */
async function readTrial(
  request: Request,
  person: Caller,
  callers: NamedCallers,
  fields: readonly string[] = FIELDS,
): Promise<Trial> {
  const body = await readBody(request, fields, MAX_BODY_BYTES)
  const text = <T>(field: string, parse: Parameter<T>): T | undefined => parseField(body, field, parse)
  const tool = text('tool', itemId)
  if (tool === undefined) throw invalidBody('The field "tool" is missing.')
  const input = body.get('input') ?? {}
  if (!isObject(input)) throw invalidBody('The field "input" must be an object.')
  const given = body.get('caller')
  const asText = isObject(given) ? new Map([['caller', toJsonText(given)]]) : body
  const caller = parseField(asText, 'caller', WHOSE.caller)
  const found = findCaller(callers, { as: text('as', WHOSE.as), caller }, person)
  return {
    tool,
    app: text('app', WHOSE.app),
    input,
    name: found.name,
    rolesFrom: found.rolesFrom,
    caller: found.caller,
    history: body.get('history'),
  }
}
