import type { Caller } from './caller.ts'
import { type Ceiling, decide, type Decided, decideWithInput, explain } from './decide/decide.ts'
import type { Epoch } from './decide/epoch.ts'
import { projectMarks, rule, type Ruling, visibleBits } from './decide/ruling.ts'
import type { Decision } from './decision/outcome.ts'
import type { OutcomeWord } from './decision/words.ts'
import { reason } from './decision/reason.ts'
import type { CallRequest, DoorPorts, Seen, Sight } from './door/attempt.ts'
import { call } from './door/call.ts'
import type { LimitUseOf, UsesOf } from './door/limits.ts'
import type { CallOutcome } from './door/outcome.ts'
import { sha256Hex } from './hash.ts'
import type { Mark } from './layers/mark.ts'
import { callerMarks, fixedMarks, indexPolicy, type PolicyIndex } from './layers/policy.ts'
import { stepMarks } from './layers/step.ts'
import type { ParsedPolicy } from './policy/parse.ts'
import type { Policy } from './policy/policy.ts'
import { bitsWhere, hasBit, isEmpty, membersOf } from './tools/bits.ts'
import { definitionHash } from './tools/definition-hash.ts'
import type { Tool } from './tools/tool.ts'
import type { Toolset } from './tools/toolset.ts'

/** What one caller sees in one run: an immutable snapshot. */
export interface View {
  readonly caller: Caller
  /** The visible tools, in the order of their ids. */
  readonly tools: readonly Tool[]
  readonly ids: readonly string[]
  readonly size: number
  /** Hash of the visible definitions, 32 hex digits: equal views have equal bytes. */
  readonly fingerprint: string
  /** Why the view is empty, where this run's visibility failed. */
  readonly failure: string | undefined
  has(id: string): boolean
  get(id: string): Tool | undefined
  /** Every layer's answer about a tool, the deciding one first. For people; never for the model. */
  explain(id: string): Decision
  /**
   * Gives a tighter view, for a step or a sub-agent; availability is read anew.
   *
   * @throws {UnknownToolError} for a name in `activeTools` that the catalog has never seen
   * @throws {ConfigError} for a policy that cannot be used
   */
  narrow(options: NarrowOptions): View
  call(request: CallRequest): Promise<CallOutcome>
}

export interface NarrowOptions {
  /** Ids. `[]` means none. */
  readonly activeTools?: readonly string[] | undefined
  readonly policy?: Policy | readonly Policy[] | undefined
}

/** What views ask of their gate. */
export interface ViewHost {
  readonly ports: DoorPorts
  today(): Epoch
  readonly usesOf: UsesOf
  parsePolicy(policy: Policy | readonly Policy[]): readonly ParsedPolicy[]
  checkNames(names: readonly string[]): void
}

/** What a run may at most, before anything is held back for the moment. */
export interface ViewCeiling {
  readonly caller: Caller
  readonly snapshot: Toolset
  /** Computed when they are asked for: a view that is not narrowed needs its ruling only. */
  readonly marks: () => readonly Mark[]
  readonly policies: readonly PolicyIndex[]
  readonly failure: string | undefined
}

/** Gives the view of a ceiling today. `ruling` is what both add up to, where that is known already. */
export function createView(
  host: ViewHost,
  ceiling: ViewCeiling,
  ruling: Ruling = ruleToday(host.today(), ceiling),
): View {
  const { caller, snapshot, policies, failure } = ceiling
  const asked: Ceiling = { caller, ruling, policies }
  const visible = visibleBits(ruling)
  const lazy = lazyListing(snapshot, () => membersOf(visible))

  const decideToday = (id: string) => decide(asked, host.today(), id)
  const explainToday = (id: string): Decision => explain(asked, host.today(), decideToday(id))
  const has = (id: string) => {
    const index = snapshot.indexOf(id)
    return index !== -1 && hasBit(visible, index)
  }
  const sight: Sight = {
    caller,
    ids() {
      const today = host.today()
      return lazy.ids.filter((id) => isVisible(decide(asked, today, id).outcome))
    },
    see: (id) => {
      const today = host.today()
      const decided = decide(asked, today, id)
      const uses = decided.tool ? host.usesOf(today.snapshot, decided.now, caller) : NO_USES
      const { policyRevision, catalogRevision } = today
      const { outcome, tool } = decided
      const seen: SeenToday = { outcome, tool, uses, policyRevision, catalogRevision, today, decided }
      return seen
    },
    seeInput: (seen, input) => decideWithInput(asked, (seen as SeenToday).today, (seen as SeenToday).decided, input),
    explain: (seen) => explain(asked, (seen as SeenToday).today, (seen as SeenToday).decided),
    isStale: (seen) => host.today() !== (seen as SeenToday).today,
  }

  return Object.freeze({
    caller,
    failure,
    get tools() {
      return lazy.tools
    },
    get ids() {
      return lazy.ids
    },
    get size() {
      return lazy.ids.length
    },
    get fingerprint() {
      return lazy.fingerprint
    },
    has,
    get: (id: string) => (has(id) ? snapshot.get(id) : undefined),
    explain: explainToday,
    narrow: (options: NarrowOptions) => createView(host, narrowCeiling(host, ceiling, options)),
    call: (request: CallRequest) => call(sight, request, host.ports),
  })
}

const NO_USES: readonly LimitUseOf[] = []

/** An epoch never changes, so what was decided in one holds for as long as it is today's. */
interface SeenToday extends Seen {
  readonly today: Epoch
  readonly decided: Decided
}

function isVisible(outcome: OutcomeWord): boolean {
  return outcome === 'allow' || outcome === 'ask'
}

/** The ceiling, what is held back now, and whatever policy and catalog have come to refuse since. */
function ruleToday(today: Epoch, { caller, snapshot, marks }: ViewCeiling): Ruling {
  const current = today.ruling(caller)
  return rule(snapshot, [...marks(), ...projectMarks(current, snapshot), ...goneMarks(snapshot, today.snapshot)])
}

function goneMarks(snapshot: Toolset, today: Toolset): readonly Mark[] {
  if (snapshot === today) return []
  const bits = bitsWhere(snapshot.size, (i) => !today.has(snapshot.ids[i] as string))
  const told = reason('catalog', 'tool_not_found', 'the catalog has it no more')
  return isEmpty(bits) ? [] : [{ outcome: 'deny', bits, reason: () => told }]
}

function narrowCeiling(host: ViewHost, ceiling: ViewCeiling, { activeTools, policy }: NarrowOptions): ViewCeiling {
  const { snapshot, caller } = ceiling
  if (activeTools) host.checkNames(activeTools)
  const first = ceiling.policies.length
  const added =
    policy === undefined ? [] : host.parsePolicy(policy).map((parsed, i) => indexPolicy(parsed, first + i, snapshot))
  const marks = [
    ...ceiling.marks(),
    ...(activeTools ? stepMarks(snapshot, activeTools) : []),
    ...added.flatMap((index) => [...fixedMarks(index), ...callerMarks(index, caller)]),
  ]
  return { ...ceiling, marks: () => marks, policies: [...ceiling.policies, ...added] }
}

/** Computes the visible lists when they are first asked for: a view that only calls never needs them. */
function lazyListing(snapshot: Toolset, members: () => readonly number[]) {
  let tools: readonly Tool[] | undefined
  let ids: readonly string[] | undefined
  let fingerprint: string | undefined
  return {
    get tools(): readonly Tool[] {
      return (tools ??= Object.freeze(members().map((i) => snapshot.tools[i] as Tool)))
    },
    get ids(): readonly string[] {
      return (ids ??= Object.freeze(this.tools.map((tool) => tool.id)))
    },
    get fingerprint(): string {
      return (fingerprint ??= sha256Hex(this.tools.map(definitionHash).join('\n')).slice(0, 32))
    },
  }
}
