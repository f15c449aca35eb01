import type { CallInputRequired, CallOutcome, Caller, CallWaiting, Progress, Tool, View } from '@toolgate/core'
import type { JsonObject } from '@toolgate/values/json'
import { messageOf } from '@toolgate/values'
import { definitionHash } from '@toolgate/core/pins'
import type { Continuation } from '@toolgate/core/toolset'
import type { McpReply, McpRequest } from './request.ts'
import { RPC_ERRORS } from '../model/protocol.ts'
import { ApprovalDoors, type ApprovalDoorsOptions, isUrlClient } from './approval-doors.ts'
import { type ClientAnswers, type ClientLink, clientLink } from '../servers/asks/client-link.ts'
import { type ClientResponses, readResponses, ResponsesInvalid } from '../servers/asks/answers.ts'
import {
  SealedStates,
  type SealedStateOptions,
  type StateBinding,
  StateInvalid,
  TooManyStates,
} from '../servers/asks/sealed-state.ts'
import { DecisionWaits } from './decision-waits.ts'
import { holdCall } from './held-approvals.ts'
import { withHolder } from '../model/holder.ts'
import { isAsked } from '../servers/asks/asked.ts'
import { heldIn } from '../servers/asks/held-calls.ts'

/** Cancels the work of a server that waits for an answer that cannot come. */
type CancelWaiting = (state: unknown, server: string | undefined, caller: Caller, why: string) => void

interface RoundsDeps {
  readonly cancelWaiting?: CancelWaiting | undefined
  readonly states: Pick<SealedStates, 'open' | 'seal'>
  readonly doors: ApprovalDoors
  readonly waits: ApprovalDoorsOptions['waits']
  /** Returns how long a call is held for a person's decision. */
  readonly holdMs: () => number
  /** The replica that holds calls between two rounds. Absent if this gateway runs alone. */
  readonly holder?: string | undefined
}

/** Returns the rounds of a gateway. */
export function createRounds(
  options: Omit<ApprovalDoorsOptions, 'waits'> &
    SealedStateOptions &
    Pick<RoundsDeps, 'cancelWaiting' | 'holder'> &
    Partial<Pick<RoundsDeps, 'waits' | 'holdMs'>>,
): CallRounds {
  const { cancelWaiting, holder, waits = new DecisionWaits(options), holdMs = () => 0 } = options
  const [states, doors] = [new SealedStates(options), new ApprovalDoors({ ...options, waits })]
  return new CallRounds({ states, doors, waits, holdMs, cancelWaiting, holder })
}

/** A call of an item, as its method has parsed it from a request. */
interface RoundCall {
  readonly view: View
  /** The item, if the caller sees it. The state of a hidden item is not opened. */
  readonly tool: Tool | undefined
  readonly input: unknown
  /** The item's name or URI, as the client spelled it. */
  readonly name: string
  /** Returns how the client spelled the call that waits. Default: `name`. */
  nameOf?(outcome: CallWaiting): string
  /** Sends the progress of the call, if the client wants it. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Whether the call is part of a task, which is not held. */
  readonly isTask?: boolean
  /** Calls the item through the view. */
  call(round: Round): Promise<CallOutcome>
  /**
   * Returns the reply with a task for a waiting call, to clients that support tasks. `requests` show where a person
   * decides.
   */
  toTask?(outcome: CallWaiting, requests: JsonObject | undefined): Promise<McpReply | undefined>
  /** Returns the reply to a call that cannot continue. Each method has its own errors. */
  toFailure(text: string): McpReply
  /** Returns the reply to an outcome that needs no further round. */
  toReply(outcome: CallOutcome): McpReply | Promise<McpReply>
}

/** The fields that a round adds to a call. */
interface Round {
  readonly context: ClientLink
  readonly continues?: Continuation | undefined
}

/** The maximum number of rounds in one call. */
export const MAX_ROUNDS = 10

/** The content of a sealed state. */
type RoundState =
  | {
      readonly kind: 'answers'
      readonly continues: Continuation
      readonly asked: readonly string[]
      readonly state: unknown
    }
  | { readonly kind: 'approval'; readonly approvalId: string; readonly round: number }

/** A retry, with its opened state. */
interface Retry {
  readonly continues?: Continuation | undefined
  readonly answers?: ClientAnswers | undefined
  readonly answersAhead?: ClientResponses | undefined
  /** The approval that an earlier round requested, and the number of that round. */
  readonly approval?: { readonly id: string; readonly round: number; readonly isOpened: boolean } | undefined
}

const FIRST: Retry = {}

/** Serves the calls that may need several rounds with a client: `tools/call`, `resources/read` and `prompts/get`. */
export class CallRounds {
  readonly #deps: RoundsDeps

  constructor(deps: RoundsDeps) {
    this.#deps = deps
  }

  /** Makes one round of a call. */
  async serve(request: McpRequest, call: RoundCall): Promise<McpReply> {
    let retry = FIRST
    try {
      if (mayContinue(request) && call.tool) retry = await this.#open(request, call, call.tool)
    } catch (error) {
      if (error instanceof StateInvalid || error instanceof ResponsesInvalid) return refuseRetry(call, error)
      throw error
    }
    const { approval } = retry
    if (approval?.isOpened) await this.#deps.doors.waitForDecision(approval.id, request.signal)
    const { answers, answersAhead } = retry
    const context = answers || answersAhead ? clientLink({ ...linkOf(request), answers, answersAhead }) : request.link
    const outcome = await call.call({ context, continues: retry.continues })
    // The state is used up, so nobody can answer the server's question.
    if (outcome.status === 'refused' && retry.answers)
      this.#deps.cancelWaiting?.(retry.answers.state, call.tool?.namespace, request.caller, 'its retry was refused')
    try {
      if (outcome.status === 'input_required') return await this.#ask(request, call, outcome)
      if (outcome.status === 'waiting') {
        const shown = await this.#show(request, call, outcome, retry)
        return shown ?? (await this.#hold(request, call, outcome, { retry, context }))
      }
    } catch (error) {
      if (error instanceof TooManyStates) return call.toFailure(`${call.name} failed: ${error.message}`)
      throw error
    }
    return call.toReply(outcome)
  }

  /** Returns a retry with its opened state. @throws {StateInvalid | ResponsesInvalid} */
  async #open(request: McpRequest, call: RoundCall, tool: Tool): Promise<Retry> {
    const { requestState, inputResponses } = request.params
    // The answers are read first, so that a client with invalid answers can still use its state.
    const sent = readResponses(inputResponses)
    // Without a state it is a new call. Its server asks again for what the client has not sent.
    if (isAbsent(requestState)) return { answersAhead: sent }
    const state = (await this.#deps.states.open(bindingOf(request, call, tool), requestState)) as RoundState
    if (state.kind === 'approval') {
      const { action } = sent[APPROVAL] ?? {}
      return { approval: { id: state.approvalId, round: state.round, isOpened: action === 'accept' } }
    }
    const asked = state.asked.filter((key) => Object.hasOwn(sent, key))
    const responses = Object.fromEntries(asked.map((key) => [key, sent[key]]))
    return { continues: state.continues, answers: { responses, state: state.state } }
  }

  async #ask(request: McpRequest, call: RoundCall, outcome: CallInputRequired): Promise<McpReply> {
    const { payload, continues } = outcome
    if (request.link.era !== 'modern' || !call.tool || !isAsked(payload)) return call.toReply(outcome)
    const asks = payload.requests
    try {
      if (continues.round > MAX_ROUNDS) throw new TooManyStates(`it asked for more input more than ${MAX_ROUNDS} times`)
      return await this.#reply(request, call, call.tool, asks, {
        kind: 'answers',
        continues,
        asked: Object.keys(asks),
        state: payload.state,
      })
    } catch (error) {
      await this.#abandon(request, call, outcome, messageOf(error))
      throw error
    }
  }

  /** Ends a call whose question cannot reach its client, at its server and in the audit. */
  async #abandon({ caller }: McpRequest, call: RoundCall, outcome: CallInputRequired, why: string): Promise<void> {
    const { payload, continues } = outcome
    const { tool, view } = call
    if (!tool || !isAsked(payload)) return
    this.#deps.cancelWaiting?.(payload.state, tool.namespace, caller, why)
    await view.call({ tool: tool.id, continues, as: { kind: 'abandoned', why } })
  }

  /**
   * Returns the reply that shows the client where a person approves; `undefined` for clients that get a text instead.
   */
  async #show(request: McpRequest, call: RoundCall, outcome: CallWaiting, retry: Retry): Promise<McpReply | undefined> {
    const { doors } = this.#deps
    const { approval } = outcome
    const elicitation = isUrlClient(request)
      ? doors.elicitationOf(approval, call.nameOf?.(outcome) ?? call.name)
      : undefined
    const { elicitationId: _, ...params } = elicitation ?? {}
    const asks = elicitation && { [APPROVAL]: { method: 'elicitation/create', params } }
    const task = await call.toTask?.(outcome, asks)
    if (task || !elicitation || !asks) return task
    if (request.link.era === 'legacy') return { error: doors.urlRequired(elicitation, request) }
    const before = retry.approval
    const round = (before?.round ?? 0) + 1
    // The link is shown once, so a person who does not open it gets no second one, and a client cannot ask forever.
    if (!call.tool || round > MAX_ROUNDS || before?.isOpened === false) return undefined
    return this.#reply(request, call, call.tool, asks, { kind: 'approval', approvalId: approval.id, round })
  }

  /** Holds a call of a client that got no link and no task, and returns its reply. */
  async #hold(
    request: McpRequest,
    call: RoundCall,
    outcome: CallWaiting,
    { retry, context }: { readonly retry: Retry; readonly context: ClientLink },
  ): Promise<McpReply> {
    const { waits, holdMs } = this.#deps
    // A client that did not open its link has given up already.
    const ms = retry === FIRST && call.isTask !== true ? holdMs() : 0
    if (ms === 0) return call.toReply(outcome)
    const { signal } = request
    const again = () => call.call({ context })
    const last = await holdCall(outcome, { waits, ms, signal, onProgress: call.onProgress, again })
    return last.status === 'input_required' ? this.#ask(request, call, last) : call.toReply(last)
  }

  async #reply(
    request: McpRequest,
    call: RoundCall,
    tool: Tool,
    asks: JsonObject,
    state: RoundState,
  ): Promise<McpReply> {
    const sealed = await this.#deps.states.seal(bindingOf(request, call, tool), state)
    const isHeld = state.kind === 'answers' && heldIn(state.state) !== undefined
    return { asks, state: withHolder(sealed, isHeld ? this.#deps.holder : undefined) }
  }
}

/** The key of the input request that opens an approval's link. */
const APPROVAL = 'approval'

/** Whether a request may continue an earlier round. Earlier revisions lack these fields. */
function mayContinue({ link, params }: McpRequest): boolean {
  return link.era === 'modern' && !(isAbsent(params['requestState']) && isAbsent(params['inputResponses']))
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}

function linkOf({ link }: McpRequest): ClientLink {
  const { era, capabilities, ask, logLevel } = link
  return { era, capabilities, ask, logLevel, log: (params) => link.log(params) }
}

function bindingOf({ caller, client }: McpRequest, { view, input }: RoundCall, tool: Tool): StateBinding {
  return { caller, client, app: view.app, item: tool.id, definition: definitionHash(tool), input }
}

/** Records the attempt, and returns the error. Every unusable state has the same one. */
async function refuseRetry({ view, tool, name }: RoundCall, { message }: Error): Promise<McpReply> {
  await view.call({ tool: tool?.id, calledAs: name, malformed: message })
  return { error: { code: RPC_ERRORS.params_invalid.code, message } }
}
