import { randomUUID } from 'node:crypto'
import type { Caller, JsonSchema, Tool, View, Visibility } from '@toolgate/core'
import { sha256Hex } from '@toolgate/core/internal'
import { definitionHash } from '@toolgate/core/pins'
import type { ModelMessage } from 'ai'
import type { Budgets, Used } from '../budgets.ts'
import type { AgentCall, PendingCall, RunStep, Usage } from '../result.ts'

/** All that a paused run needs to go on. What may run is not in it: that is the gate's to say, at the resume. */
export interface PauseState {
  readonly version: 1
  /** Makes no two pauses alike. */
  readonly nonce: string
  readonly runId: string
  readonly identity: string
  readonly app: string | undefined
  /** What the run saw when it paused, with the hash of each definition. */
  readonly tools: readonly (readonly [id: string, definitionHash: string])[]
  readonly policyRevision: number
  /** Of the planner: the forks that it came from. */
  readonly lineage: readonly string[]
  readonly budgets: Budgets
  readonly used: Used
  readonly usage: Usage
  /** The run's own conversation. Stored under this name. */
  readonly level: Conversation
}

/** One conversation with a model: the run's own, or that of a sub-agent in it. */
export interface Conversation {
  /** Without results of the calls that wait. */
  readonly messages: readonly ModelMessage[]
  readonly steps: readonly RunStep[]
  /** As `prepareStep` has left them. */
  readonly instructions: string | undefined
  readonly context: unknown
  readonly pending: readonly PendingState[]
}

export type PendingState = WaitingCall &
  (
    | { readonly kind: 'approval'; readonly approvalId: string }
    | { readonly kind: 'input'; readonly question: string; readonly schema: JsonSchema }
    /** A sub-agent in which calls wait. */
    | { readonly kind: 'agent'; readonly level: Conversation }
  )

/** A call whose result is not known yet. */
export interface WaitingCall {
  readonly callId: string
  /** A tool id. */
  readonly tool: string
  /** As the model wrote it. */
  readonly name: string
  readonly input: unknown
}

/** One call that a person has to answer: as the result shows it, and as the pause stores it. */
export interface OpenCall {
  readonly pending: PendingCall
  readonly stored: Exclude<PendingState, { readonly kind: 'agent' }>
}

/** Gives all that people have to answer, in the order of the calls, those in sub-agents where the sub-agent stands. */
export function openCallsOf(conversation: Conversation): readonly OpenCall[] {
  const ids = new Set<string>()
  return walk(conversation, []).map(({ stored, agents }) => {
    const { callId, tool, input } = stored
    const id = freeId([...agents.map((agent) => agent.callId), callId].map(encodeURIComponent).join('/'), ids)
    const base = { id, tool, callId, input, agents }
    const pending: PendingCall =
      stored.kind === 'approval'
        ? { ...base, kind: stored.kind, approvalId: stored.approvalId }
        : { ...base, kind: stored.kind, question: stored.question, schema: stored.schema }
    return { pending: Object.freeze(pending), stored }
  })
}

function walk(
  conversation: Conversation,
  agents: readonly AgentCall[],
): readonly { readonly stored: OpenCall['stored']; readonly agents: readonly AgentCall[] }[] {
  return conversation.pending.flatMap((stored) =>
    stored.kind === 'agent'
      ? walk(stored.level, [...agents, { tool: stored.tool, callId: stored.callId }])
      : [{ stored, agents }],
  )
}

/** Not every provider gives each call an id of its own. */
function freeId(wanted: string, taken: Set<string>): string {
  let id = wanted
  for (let n = 2; taken.has(id); n++) id = `${wanted}~${n}`
  taken.add(id)
  return id
}

/** Gives what a view sees now, with the hash of each definition. */
export function toolsOf(view: View): PauseState['tools'] {
  return view.narrow({}).tools.map((tool) => [tool.id, definitionHash(tool)] as const)
}

/**
 * Gives the visibility of a resumed run: what it saw when it paused, by the definitions of then, and of that what the
 * host shows now. It can only narrow; what is gone, hidden or changed since is as if it did not exist.
 */
export function toolsOfPause(paused: PauseState['tools'], visibility: Visibility | undefined): Visibility {
  const hashes = new Map(paused)
  return async (context) => {
    const unchanged = new Set(context.tools.filter((tool) => isUnchanged(tool, hashes)).map(({ id }) => id))
    // What is no visibility, such as `null`, fails here, and then nothing is shown.
    const given = visibility === undefined ? context.tools : visibility
    const shown = typeof given === 'function' ? await given(context) : given
    return [...shown].filter((named) => unchanged.has(typeof named === 'string' ? named : named.id))
  }
}

function isUnchanged(tool: Tool, hashes: ReadonlyMap<string, string>): boolean {
  return hashes.get(tool.id) === definitionHash(tool)
}

/** The forks that a planner came from, the oldest first: one that goes on with a run is at least as tight as it was. */
export type Lineage = readonly string[]

/** What tells one fork from another. */
interface ForkParts {
  readonly policy?: unknown
  readonly hooks?: unknown
  readonly name?: string | undefined
}

/** Gives a planner's lineage and one fork more. */
export function forkLineage(lineage: Lineage, { policy, hooks, name }: ForkParts): Lineage {
  return [...lineage, name === undefined ? `parts:${sha256Hex(textOf([policy, hooks]))}` : `name:${name}`]
}

/** Whether a planner stands on all the forks that another did. */
export function descendsFrom(lineage: Lineage, other: Lineage): boolean {
  return other.every((fork, i) => lineage[i] === fork)
}

/** What is no data is known to the process that has it, and to no other. */
function textOf(parts: unknown): string {
  return JSON.stringify(parts, (_, value: unknown) => (isOpaque(value) ? idOf(value) : value))
}

function isOpaque(value: unknown): value is object {
  if (typeof value === 'function') return true
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype !== Object.prototype && prototype !== null
}

const ids = new WeakMap<object, string>()

function idOf(value: object): string {
  let id = ids.get(value)
  if (id === undefined) ids.set(value, (id = randomUUID()))
  return id
}

/**
 * Gives who a caller is, as one text: tenant, user, agent and session. Roles, scopes and the chat are not of it: they
 * say what one may, which is decided anew each time.
 */
export function identityOf({ tenant, user, agent, session }: Caller): string {
  return lengthPrefixed([tenant, user, agent, session])
}

/** Gives the key of a caller's session within its tenant; `undefined` where there is none. */
export function sessionKeyOf({ tenant, session }: Caller): string | undefined {
  if (session === undefined) return undefined
  // Hashed, as a store takes no key of any length and content.
  return `planner:${sha256Hex(lengthPrefixed([tenant, session]))}`
}

/** So that no two lists have one text, whatever stands in them. An absent part is not an empty one. */
function lengthPrefixed(parts: readonly (string | undefined)[]): string {
  return parts.map((part) => (part === undefined ? '-' : `${part.length}:${part}`)).join(',')
}
