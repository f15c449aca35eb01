import { randomUUID } from 'node:crypto'
import type { Caller, JsonSchema, Tool, View, Visibility } from '@toolgate/core'
import { sha256Hex } from '@toolgate/values'
import { definitionHash } from '@toolgate/core/pins'
import type { ModelMessage } from 'ai'
import type { Budgets, Used } from '../budgets.ts'
import type { AgentCall, PendingCall, RunStep, Usage } from '../result.ts'

/** The data from which a paused run is resumed. It grants nothing: the gate decides at the resume. */
export interface PauseState {
  readonly version: 1
  /** A random value, so that no two pauses are equal. */
  readonly nonce: string
  readonly runId: string
  readonly identity: string
  readonly app: string | undefined
  /** The tools that the run saw when it paused, with the hash of each definition. */
  readonly tools: readonly (readonly [id: string, definitionHash: string])[]
  readonly policyRevision: number
  /** The lineage of forks of the planner. */
  readonly lineage: readonly string[]
  readonly budgets: Budgets
  readonly used: Used
  readonly usage: Usage
  /** The run's own conversation. Stored under this name. */
  readonly level: Conversation
}

/** One conversation with a model: the run's own, or that of a sub-agent in it. */
export interface Conversation {
  /** The messages, without the results of waiting calls. */
  readonly messages: readonly ModelMessage[]
  readonly steps: readonly RunStep[]
  /** The instructions as `prepareStep` returned them. */
  readonly instructions: string | undefined
  readonly context: unknown
  readonly pending: readonly PendingState[]
}

export type PendingState = WaitingCall &
  (
    | { readonly kind: 'approval'; readonly approvalId: string }
    | { readonly kind: 'input'; readonly question: string; readonly schema: JsonSchema }
    /** A sub-agent with waiting calls. */
    | { readonly kind: 'agent'; readonly level: Conversation }
  )

/** A call without a result yet. */
export interface WaitingCall {
  readonly callId: string
  /** A tool id. */
  readonly tool: string
  /** The name that the model wrote. */
  readonly name: string
  readonly input: unknown
}

/** One call that a person must answer, as in the result and in the stored pause. */
export interface OpenCall {
  readonly pending: PendingCall
  readonly stored: Exclude<PendingState, { readonly kind: 'agent' }>
}

/** Returns all calls that people must answer, in call order. Those of a sub-agent are in its place. */
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

/** Returns a free id: `wanted`, or a numbered form of it, because some providers repeat ids. */
function freeId(wanted: string, taken: Set<string>): string {
  let id = wanted
  for (let n = 2; taken.has(id); n++) id = `${wanted}~${n}`
  taken.add(id)
  return id
}

/** Returns the tools that a view sees now, with the hash of each definition. */
export function toolsOf(view: View): PauseState['tools'] {
  return view.narrow({}).tools.map((tool) => [tool.id, definitionHash(tool)] as const)
}

/**
 * Returns the visibility of a resumed run: the tools that it saw when it paused, if their definitions are unchanged,
 * narrowed by the host's visibility. A tool that was removed, hidden or changed is left out.
 */
export function toolsOfPause(paused: PauseState['tools'], visibility: Visibility | undefined): Visibility {
  const hashes = new Map(paused)
  return async (context) => {
    const unchanged = new Set(context.tools.filter((tool) => isUnchanged(tool, hashes)).map(({ id }) => id))
    // An invalid visibility, such as `null`, throws here, and no tool is visible.
    const given = visibility === undefined ? context.tools : visibility
    const shown = typeof given === 'function' ? await given(context) : given
    return [...shown].filter((named) => unchanged.has(typeof named === 'string' ? named : named.id))
  }
}

function isUnchanged(tool: Tool, hashes: ReadonlyMap<string, string>): boolean {
  return hashes.get(tool.id) === definitionHash(tool)
}

/** The forks that a planner came from, the oldest first. A planner that resumes a run must be at least as tight. */
export type Lineage = readonly string[]

/** Returns a planner's lineage with one more fork. */
export function forkLineage(
  lineage: Lineage,
  { policy, hooks, name }: { readonly policy?: unknown; readonly hooks?: unknown; readonly name?: string | undefined },
): Lineage {
  return [...lineage, name === undefined ? `parts:${sha256Hex(textOf([policy, hooks]))}` : `name:${name}`]
}

/** Whether a planner's lineage begins with all the forks of another lineage. */
export function descendsFrom(lineage: Lineage, other: Lineage): boolean {
  return other.every((fork, i) => lineage[i] === fork)
}

/**
 * Returns a text for the parts of a fork. Functions and other values without JSON get a text that only this process
 * knows.
 */
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
 * Identifies a caller in one text: tenant, user, agent and session. Roles, scopes and the chat are left out: they
 * are permissions, which are decided again each time.
 */
export function identityOf({ tenant, user, agent, session }: Caller): string {
  return lengthPrefixed([tenant, user, agent, session])
}

/** Returns the key of a caller's session within its tenant; `undefined` without a session. */
export function sessionKeyOf({ tenant, session }: Caller): string | undefined {
  if (session === undefined) return undefined
  // The key is hashed, because stores limit the length and characters of keys.
  return `planner:${sha256Hex(lengthPrefixed([tenant, session]))}`
}

/** Encodes a list as a text. Different lists have different texts, and an absent part differs from an empty one. */
function lengthPrefixed(parts: readonly (string | undefined)[]): string {
  return parts.map((part) => (part === undefined ? '-' : `${part.length}:${part}`)).join(',')
}
