import { isObject } from '@toolgate/values/json'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { preparedViews } from '../../heart/views.ts'
import { approvalUrl } from '../../calls/approval-doors.ts'
import { DecisionWaits } from '../../calls/decision-waits.ts'
import { holdCall } from '../../calls/held-approvals.ts'
import { toCancelling } from '@toolgate/values'
import { toBody, toRefusal } from '../http/call-body.ts'
import type { MaybePromise } from '@toolgate/core/internal'
import {
  type CallOutcome,
  type Caller,
  type CallRefused,
  type CallRequest,
  type Tool,
  ToolgateError,
  type View,
} from '@toolgate/core'
import { readsAsUnknown } from '@toolgate/core/decide'
import { ITEM_KINDS } from '@toolgate/core/words'
import { unwrapOutcome } from '@toolgate/mcp'
import { callerAt, isRefused, opensEndpoint, type RefusalReason, toKeyId, toResource } from '../../auth/credential.ts'
import { MAX_BODY_BYTES } from '../../model/body.ts'
import { lackingScopes } from '../../model/scopes.ts'
import { ApiFault } from '../../model/faults.ts'
import { invalidBody, oneOf, parseQuery, queryOf, readBody, shortText } from '../http/request.ts'
import type { AgentCallBody, AgentDecisionBody, AgentItemRow, AgentItemsBody } from '../../model/rows.ts'

/** The API for agents that do not use MCP. Each route acts for the caller of the agent's own credential. */
export const room: Room = {
  name: 'agents',
  open({ gate, servers, door, revisions }) {
    const listProblemOf = (caller: Caller) => servers.fleet.listProblemOf(caller)
    const waits = new DecisionWaits({ gate, isStopping: () => door.stopping.isStopping })
    const holdMs = () => revisions.current.asking.wait?.ms ?? 0
    const deps: AgentDeps = { ...door, view: preparedViews({ gate, servers }), listProblemOf, waits, holdMs }
    const by = 'agent'
    return {
      routes: [
        { method: 'GET', path: '/api/list', by, answer: (request) => list(request, deps) },
        { method: 'POST', path: '/api/decide', by, answer: (request) => decide(request, deps) },
        { method: 'POST', path: '/api/call', by, answer: (request) => call(request, deps) },
      ],
      drain: async () => waits.stop(),
      close: () => waits.close(),
    }
  },
}

interface AgentDeps extends Pick<Heart['door'], 'authenticator' | 'publicUrl' | 'stopping'> {
  readonly view: ReturnType<typeof preparedViews>
  readonly waits: DecisionWaits
  /** Returns how long a call is held for a person's decision. */
  readonly holdMs: () => number
  /** Returns why an agent's lists may lack items now. */
  readonly listProblemOf: (caller: Caller) => string | undefined
}

/** `GET /api/list?kind=&app=`: the items that the agent sees. */
async function list(request: Request, deps: AgentDeps): Promise<AgentItemsBody> {
  const { kind = 'tool', app } = parseQuery(queryOf(request), {
    app: shortText,
    kind: oneOf(ITEM_KINDS),
  })
  const { view } = await openAs(request, app, deps)
  const incomplete = deps.listProblemOf(view.caller)
  return { kind, items: view.items(kind).map(toRow), ...(incomplete === undefined ? {} : { incomplete }) }
}

function toRow({ id, name, title, description, inputSchema, uri, mimeType }: Tool): AgentItemRow {
  const isCalledWithInput = uri === undefined
  return {
    id,
    name,
    ...(title === undefined ? {} : { title }),
    description,
    ...(isCalledWithInput ? { inputSchema } : { uri }),
    ...(mimeType === undefined ? {} : { mimeType }),
  }
}

/**
 * `POST /api/decide?app=` with `{ tool, input }`: the decision that a call would get now. It reveals no more than the
 * text of a refused call.
 */
async function decide(request: Request, deps: AgentDeps): Promise<AgentDecisionBody> {
  const agent = await openAs(request, appOf(request), deps)
  const asked = await readCall(request)
  const previewed = await agent.view.preview({ ...asked, callerNow: agent.callerNow })
  const { tool } = asked
  return previewed.status === 'refused'
    ? { tool, ...toRefusal(explained(previewed, agent, deps)) }
    : { tool, outcome: previewed.status }
}

/** `POST /api/call?app=` with `{ tool, input }`: makes the call. The outcome is in the body's `status`. */
async function call(request: Request, deps: AgentDeps): Promise<AgentCallBody> {
  const agent = await openAs(request, appOf(request), deps)
  const asked = await readCall(request)
  if (deps.stopping.isStopping)
    throw new ApiFault('stopping', 'The gateway is stopping. Try again in a moment.', { 'retry-after': '1' })
  const { signal } = request
  const make = async () =>
    unwrapOutcome(await agent.view.call({ ...asked, asker: agent.id, callerNow: agent.callerNow, signal }))
  const outcome = await held(await make(), signal, make, deps)
  const scopes = lackingScopes(outcome)
  if (scopes) {
    const challenge = deps.authenticator.insufficientScope(scopes, agent.resource)
    throw new ApiFault('scope_insufficient', (outcome as CallRefused).text, { 'www-authenticate': challenge })
  }
  const said = outcome.status === 'refused' ? explained(outcome, agent, deps) : outcome
  return toBody(said, ({ id }) => approvalUrl(id, deps.publicUrl))
}

/** Holds a call that waits for a person, if the configuration says so. */
function held(
  outcome: CallOutcome,
  signal: AbortSignal,
  again: () => Promise<CallOutcome>,
  { waits, holdMs }: AgentDeps,
): MaybePromise<CallOutcome> {
  const ms = outcome.status === 'waiting' ? holdMs() : 0
  return ms === 0 ? outcome : holdCall(outcome, { waits, ms, signal: toCancelling(signal), again })
}

/** Adds to a refusal why the tool may not have been found. It does not depend on whether the tool exists. */
function explained<T extends Pick<CallRefused, 'decision' | 'text'>>(refused: T, { view }: Agent, deps: AgentDeps): T {
  const problem = readsAsUnknown(refused.decision) ? deps.listProblemOf(view.caller) : undefined
  return problem === undefined ? refused : { ...refused, text: `${refused.text} ${problem}` }
}

/** An agent with its view. */
interface Agent {
  readonly view: View
  /** The id of the agent's credential. */
  readonly id: string
  /** The endpoint that the agent's credential opened. */
  readonly resource: string
  callerNow(): Caller | undefined
}

function appOf(request: Request): string | undefined {
  return parseQuery(queryOf(request), { app: shortText }).app
}

/**
 * Authenticates the agent. Cookies are ignored, so that a page cannot call tools for the person who views it. @throws
 * {ApiFault}
 */
async function openAs(request: Request, app: string | undefined, { authenticator, view }: AgentDeps): Promise<Agent> {
  const resource = toResource(app)
  const authorization = request.headers.get('authorization') ?? undefined
  const answer = await authenticator.authenticate({ authorization }, resource)
  if (isRefused(answer)) throw toFault(answer.refused, authenticator.challenge(answer.refused, resource), authorization)
  const { for: kind, caller } = answer
  if (kind !== 'mcp')
    throw new ApiFault('key_not_for_agents', `This is a key for ${KEY_USES[kind]}. Agents need a key of their own.`)
  if (!opensEndpoint(answer, resource)) throw nothingHere()
  const callerNow = () => callerAt(authenticator.renewed(answer), resource)
  return { view: await openView(() => view(caller, app)), id: answer.id, resource, callerNow }
}

/**
 * Opens a view. An app that the agent may not use is answered like an app that does not exist, so names cannot be
 * probed.
 */
async function openView(open: () => Promise<View>): Promise<View> {
  try {
    return await open()
  } catch (error) {
    if (error instanceof ToolgateError && error.code === 'app_unknown') throw nothingHere()
    throw error
  }
}

function nothingHere(): ToolgateError {
  return new ToolgateError('app_unknown', 'Nothing is served here.')
}

const KEY_USES = { console: 'the console', host: 'a program that runs agents' } as const

function toFault(refused: RefusalReason, challenge: string, authorization: string | undefined): ApiFault {
  if (refused === 'unavailable')
    return new ApiFault('issuer_unavailable', 'The authorization server of this token cannot be reached.', {
      'retry-after': '5',
    })
  const message = refused === 'missing' ? 'A key is needed: Authorization: Bearer <key>.' : 'The key is not known.'
  return new ApiFault('unauthenticated', message, { 'www-authenticate': challenge }, toKeyId(authorization))
}

/** @throws {ApiFault} `body_invalid` */
async function readCall(
  request: Request,
): Promise<Pick<CallRequest, 'input' | 'malformed'> & { readonly tool: string }> {
  const body = await readBody(request, ['tool', 'input'], MAX_BODY_BYTES)
  const tool = body.get('tool')
  const input = body.get('input')
  if (typeof tool !== 'string' || tool === '') throw invalidBody('The field "tool" must be the id of a tool.')
  // Every attempt to call a tool leaves a record.
  return input === undefined || isObject(input) ? { tool, input } : { tool, malformed: 'input must be an object.' }
}
