import { type Caller, callerKey } from '../ports/caller.ts'
import {
  type RunBounds,
  decide,
  type Decided,
  decideWithInput,
  explain,
  findableToday,
  notFound,
  type Visible,
  visibleToday,
  type Explanation,
  toExplanation,
} from '../decide/decide.ts'
import type { PolicySnapshot, Today } from '../decide/policy-snapshot.ts'
import { noticesOf, idsOfNextStep, resolveRequestTool, openableIn } from '../decide/requests.ts'
import { toDecidedId, toDecidedRequest, type Unlisted } from '../decide/unlisted.ts'
import { projectEffects, evaluate, type Evaluation, type Effect } from '../decide/evaluation.ts'
import { type Decision, mayGoOn, reason } from '../decide/decision.ts'
import type { CallRequest, CallPorts, CallView } from '../call/attempt.ts'
import type { Kept } from '../history/histories.ts'
import { call, requestApproval } from '../call/call.ts'
import type { LimitUseOf } from '../call/costs.ts'
import type { UsesOf } from '../call/limits.ts'
import { mayStill } from '../call/may-still.ts'
import { type CallPreview, preview } from '../call/preview.ts'
import type { CallOutcome, CallRefused, CallWaiting } from '../call/outcome.ts'
import { indexPolicy, type PolicyIndex } from '../decide/layers/clauses.ts'
import { factEffects } from '../decide/layers/at-step.ts'
import { callerEffects, fixedEffects } from '../decide/layers/policy.ts'
import { stepEffects } from '../decide/layers/narrowing.ts'
import type { ParsedClause, ParsedPolicy } from '../policy/parse.ts'
import type { Policies } from '../policy/policy.ts'
import { type ItemSearchOptions, type SearchHit, searchItems } from '../search/search.ts'
import { bitsWhere, hasBit, isEmpty } from '../tools/bits.ts'
import type { RunFacts } from '../history/facts.ts'
import type { Groups } from '../tools/groups.ts'
import { isItemId, type ItemId, type ItemKind, RESOURCE_PREFIX } from '../tools/tool-id.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { checkShape, shapeOf } from '@toolgate/values'

/** The tools that one caller sees in one run: an immutable snapshot. */
export interface View<Name extends string = string> {
  readonly caller: Caller
  /** The name of the view's app. */
  readonly app: string | undefined
  /** The visible tools, in the order of their ids. */
  readonly tools: readonly Tool[]
  readonly ids: readonly string[]
  readonly size: number
  /** Hash of the visible tools' definitions, 32 hex digits: equal views have equal bytes. */
  readonly fingerprint: string
  /** Why the view is empty, if its `visibility` failed. */
  readonly failure: string | undefined
  /** Names that `visibility` returned but was not offered. They are not shown. For the developer. */
  readonly foreign: readonly string[]
  /** Texts for the model's instructions: messages of denials and hints of locked groups. */
  readonly notices: readonly string[]
  /** The visible items of a kind, in the order of their ids. Templates are a kind of their own. */
  items(kind: ItemKind): readonly Tool[]
  /** Returns whether an item of any kind is visible. A visible resource need not be listed. */
  has(id: string): boolean
  get(id: string): Tool | undefined
  /** Returns every layer's answer about a tool, the deciding one first. Show it to people, never to the model. */
  explain(id: Name | ItemId): Explanation
  /**
   * Returns a tighter view, for a step or a sub-agent. Locks and availability are read again. Returns this view if nothing
   * narrows it and nothing has changed.
   *
   * @throws {UnknownToolError} for a name in `activeTools` that the catalog has never seen
   * @throws {ConfigError} for an invalid policy
   */
  narrow(options: NarrowOptions<Name>): View<Name>
  call(request: CallRequest<Name>): Promise<CallOutcome>
  /**
   * Asks a person to approve a call if policy requires it, and runs nothing. Use it in frameworks whose own loop pauses for
   * approvals. `undefined`: no approval is needed, or a person has approved. Then make the call, which is decided again.
   */
  requestApproval(request: CallRequest<Name>): Promise<CallRefused | CallWaiting | undefined>
  /**
   * Returns how a call would end if it were made now, by its decision, input and limits. Runs nothing, takes nothing from
   * limits, calls no hooks, asks no person, and leaves no record. The call itself is decided again.
   */
  preview(request: CallRequest<Name>): Promise<CallPreview>
  /**
   * Ranks the visible tools, or the visible items of `kinds`, by a query. The answer shows no trace of hidden items.
   *
   * @throws {ToolgateError} `query_invalid`
   */
  search(query: string, options?: ItemSearchOptions): readonly SearchHit[]
}

export interface NarrowOptions<Name extends string = string> {
  /** Ids to keep. `[]` means none. */
  readonly activeTools?: readonly Name[] | undefined
  readonly policy?: Policies<Name> | undefined
  /** The history of the run. Tools that rules deny because of it are not offered. Each call is decided again. */
  readonly facts?: RunFacts | undefined
}

/** The parts of a gate that its views use. */
export interface ViewHost {
  readonly ports: CallPorts
  /** The app whose rules apply to the views. */
  readonly app: string | undefined
  readonly today: Today
  /** The current groups. */
  groups(): Groups
  /** The current rules. */
  readonly rules: { readonly now: { readonly usesOf: UsesOf } }
  parsePolicy(policy: Policies): readonly ParsedPolicy[]
  checkNames(names: readonly string[]): void
  /** Whether no tools can come later. */
  hasFixedTools(): boolean
  readonly unlisted: Unlisted
}

/** The items that a view shows in the current snapshot, computed at the first search. */
interface VisibleNow {
  readonly today: PolicySnapshot
  tools?: Visible
  items?: Visible
}

/** Returns the effects and policies that tighten a run's bounds, over the items of a snapshot. */
type Narrowing = (snapshot: Toolset) => {
  readonly effects: readonly Effect[]
  readonly policies: readonly PolicyIndex[]
}

/** The bounds of a run, before availability, locks, pins and halts. */
export interface ViewBounds {
  readonly caller: Caller
  readonly snapshot: Toolset
  /** Computed on demand, because a view that is not narrowed needs only its evaluation. */
  readonly effects: () => readonly Effect[]
  readonly policies: readonly PolicyIndex[]
  /** The snapshot in which the run began, and all later restrictions: the run's bounds over other items. */
  readonly begun: PolicySnapshot
  /** Whether histories were kept when the run began. */
  readonly kept: Kept
  readonly narrowed: readonly Narrowing[]
  readonly failure: string | undefined
  readonly foreign?: readonly string[]
}

/** Returns the ports of a view's gate; `undefined` for any other object. */
export function portsOf(view: object): CallPorts | undefined {
  return CallerView.portsOf(view)
}

/** Returns the interface of a view that calls use. @throws {TypeError} for an object that no gate created */
export function toCallView(view: View): CallView {
  if (view instanceof CallerView) return view
  throw new TypeError('a view of a gate is needed')
}

/** Returns the view of some bounds today. Pass `evaluation` if it was already computed. */
export function createView(host: ViewHost, bounds: ViewBounds, evaluation?: Evaluation): View {
  const today = host.today(bounds.caller)
  const current = today.evaluation(bounds.caller)
  const evaluated = resolveRequestTool(evaluation ?? evaluateToday(today, current, bounds))
  return Object.freeze(new CallerView(host, bounds, evaluated, today, current))
}

/**
 * A class, because a literal with getters costs a hidden class for each view. Lists are computed at first use, since a view
 * that only makes calls never needs them. Public methods work when a host detaches them.
 */
class CallerView implements View, CallView {
  readonly caller: Caller
  readonly app: string | undefined
  readonly kept: Kept
  readonly failure: string | undefined
  readonly foreign: readonly string[]
  readonly #host: ViewHost
  readonly #bounds: ViewBounds
  readonly #run: RunBounds
  /** The snapshot that the view was made in, with its evaluation. While both are current, a new view would be equal. */
  readonly #madeIn: PolicySnapshot
  readonly #madeOf: Evaluation
  /** The decisions on called tools in one snapshot. They are dropped with it, so that a view keeps no earlier snapshots. */
  #decided: { readonly today: PolicySnapshot; readonly of: Map<string, Decided> } | undefined
  #notices: readonly string[] | undefined
  #visible: VisibleNow | undefined
  #runs: WeakMap<Toolset, RunBounds> | undefined
  #kinds: Map<ItemKind, readonly Tool[]> | undefined

  constructor(host: ViewHost, bounds: ViewBounds, evaluation: Evaluation, madeIn: PolicySnapshot, madeOf: Evaluation) {
    this.caller = bounds.caller
    this.app = host.app
    this.kept = bounds.kept
    this.failure = bounds.failure
    this.foreign = bounds.foreign ?? NONE
    this.#host = host
    this.#bounds = bounds
    this.#run = { caller: bounds.caller, evaluation, policies: bounds.policies }
    this.#madeIn = madeIn
    this.#madeOf = madeOf
  }

  static portsOf(view: object): CallPorts | undefined {
    return #host in view ? view.#host.ports : undefined
  }

  get tools(): readonly Tool[] {
    return this.#run.evaluation.visible.tools
  }

  get ids(): readonly string[] {
    return this.#run.evaluation.visible.ids
  }

  get size(): number {
    return this.ids.length
  }

  get fingerprint(): string {
    return this.#run.evaluation.visible.fingerprint
  }

  get notices(): readonly string[] {
    return (this.#notices ??= noticesOf(this.#run.evaluation, this.#host.groups()))
  }

  readonly items = (kind: ItemKind): readonly Tool[] => {
    if (kind === 'tool') return this.tools
    this.#kinds ??= new Map()
    let items = this.#kinds.get(kind)
    if (!items) {
      const { tools } = this.#itemsRun().evaluation.visible
      items = Object.freeze(tools.filter((item) => item.kind === kind))
      this.#kinds.set(kind, items)
    }
    return items
  }

  readonly has = (id: string): boolean => this.get(id) !== undefined

  readonly get = (id: string): Tool | undefined => {
    const tool = visibleIn(this.#run, id)
    return tool ?? (isItemId(id) ? this.#getItem(toDecidedId(id, this.#bounds.begun.items)) : undefined)
  }

  #getItem(id: string): Tool | undefined {
    const run = this.#runOf(this.#bounds.begun, id)
    return run && visibleIn(run, id)
  }

  readonly narrow = (options: NarrowOptions): View => {
    checkShape('narrow', options, NARROW)
    const { activeTools, policy, facts } = options
    const isSame = activeTools === undefined && policy === undefined && this.#isToday()
    if (isSame && (facts === undefined || !this.#hasStepClauses())) return this
    return createView(this.#host, narrowBounds(this.#host, this.#bounds, options))
  }

  readonly call = (request: CallRequest): Promise<CallOutcome> => call(this, this.ofRun(request), this.#host.ports)

  readonly requestApproval = (request: CallRequest): Promise<CallRefused | CallWaiting | undefined> =>
    requestApproval(this, this.ofRun(request), this.#host.ports)

  readonly preview = (request: CallRequest): Promise<CallPreview> =>
    preview(this, this.ofRun(request), this.#host.ports)

  /** A token for one run fixes the run: its caller cannot name another. A resource gets the name that it is decided by. */
  ofRun(request: CallRequest): CallRequest {
    const { run: id } = this.caller
    const isResource = typeof request?.tool === 'string' && request.tool.startsWith(RESOURCE_PREFIX)
    const decided = isResource ? toDecidedRequest(request, this.#bounds.begun.items) : request
    if (id === undefined) return decided
    const run = this.#host.ports.runs?.of(this.caller)?.run
    // The history of a finished run is unknown.
    return { ...decided, run: run ?? { id, resumed: true } }
  }

  readonly explain = (id: string): Explanation => {
    const decided = this.decide(id)
    return toExplanation(decided, explain(decided), () => mayStill(this, decided, this.#host.ports))
  }

  readonly search = (query: string, options?: ItemSearchOptions): readonly SearchHit[] =>
    searchItems(this, query, options)

  visibleToday(): Visible {
    const now = this.#visibleNow()
    return (now.tools ??= visibleToday(this.#run, now.today))
  }

  visibleItemsToday(): Visible {
    const now = this.#visibleNow()
    return (now.items ??= visibleToday(this.#itemsRun(), now.today.over(now.today.items)))
  }

  #visibleNow(): VisibleNow {
    const today = this.#host.today(this.caller)
    if (this.#visible?.today !== today) this.#visible = { today }
    return this.#visible
  }

  findableToday(): Visible {
    return findableToday(this.#run, this.#host.today(this.caller))
  }

  openable(): readonly string[] {
    return openableIn(this.#run.evaluation)
  }

  checkName(id: string): void {
    if (this.#host.hasFixedTools()) this.#host.checkNames([id])
  }

  idsOfNextStep(): readonly string[] {
    const today = this.#host.today(this.caller)
    return idsOfNextStep(evaluateToday(today, today.evaluation(this.caller), this.#bounds))
  }

  idsToday(): readonly string[] {
    const today = this.#host.today(this.caller)
    return this.ids.filter((id) => mayGoOn(decide(this.#run, today, id).outcome))
  }

  decide(id: string | undefined, caller?: Caller): Decided {
    const today = this.#host.today(this.caller)
    const isOwn = caller === undefined && id !== undefined && this.#decided?.today === today
    const known = isOwn ? this.#decided?.of.get(id) : undefined
    if (known !== undefined) return known
    const decided = decide(caller === undefined ? this.#run : asCaller(this.#run, caller), today, id)
    if (decided.tool === undefined && isItemId(id))
      return this.#decideItem(today, toDecidedId(id, this.#bounds.begun.items), caller)
    // Within a snapshot, only the locks of a session can open.
    if (decided.tool !== undefined && caller === undefined && this.caller.session === undefined) {
      if (this.#decided?.today !== today) this.#decided = { today, of: new Map() }
      this.#decided.of.set(decided.tool.id, decided)
    }
    return decided
  }

  #decideItem(today: PolicySnapshot, id: string, caller: Caller | undefined): Decided {
    const run = this.#runOf(this.#bounds.begun, id)
    const now = snapshotFor(this.#host, today, id)
    if (!run || !now) return notFound(this.#run, today)
    return decide(caller === undefined ? run : asCaller(run, caller), now, id)
  }

  #runOf(begun: PolicySnapshot, id: string): RunBounds | undefined {
    const snapshot = snapshotFor(this.#host, begun, id)
    return snapshot && this.#runOver(snapshot)
  }

  /** Returns the bounds of the run over the listed resources, templates and prompts. */
  #itemsRun(): RunBounds {
    const { begun } = this.#bounds
    return this.#runOver(begun.over(begun.items))
  }

  /** Returns the bounds of the run over items other than tools, as they were when it began, with all later restrictions. */
  #runOver(begun: PolicySnapshot): RunBounds {
    this.#runs ??= new WeakMap()
    let run = this.#runs.get(begun.snapshot)
    if (!run) this.#runs.set(begun.snapshot, (run = this.#openRun(begun)))
    return run
  }

  #openRun(begun: PolicySnapshot): RunBounds {
    const { caller } = this
    const { narrowed } = this.#bounds
    const now = this.#madeIn
    if (begun.whole === now && narrowed.length === 0)
      return { caller, evaluation: begun.evaluation(caller), policies: begun.policies }
    const { snapshot } = begun
    const parts = narrowed.map((narrowing) => narrowing(snapshot))
    const effects = [...begun.boundEffects(caller), ...parts.flatMap((part) => part.effects)]
    const policies = [...begun.policies, ...parts.flatMap((part) => part.policies)]
    // Each decision about an unlisted resource uses today's policy. Such a resource is in no list.
    if (snapshot !== begun.items) return { caller, evaluation: evaluate(snapshot, effects), policies }
    const today = now.over(now.items)
    const evaluation = evaluateToday(today, today.evaluation(caller), { snapshot, effects: () => effects })
    return { caller, evaluation, policies }
  }

  usesOf({ bounds, tool, today, now }: Decided): readonly LimitUseOf[] {
    return tool ? this.#host.rules.now.usesOf(today.snapshot, now, bounds.caller) : NO_USES
  }

  decideInput(decided: Decided, input: unknown, facts?: RunFacts, hits?: ParsedClause[]): Decision {
    return decideWithInput(decided, input, facts, hits)
  }

  explainDecided(decided: Decided): Decision {
    return explain(decided)
  }

  isStale(decided: Decided): boolean {
    return this.#host.today(this.caller) !== decided.today.whole
  }

  #hasStepClauses(): boolean {
    return [...this.#bounds.policies, ...this.#madeIn.policies].some(({ hasStepClauses }) => hasStepClauses)
  }

  #isToday(): boolean {
    const today = this.#host.today(this.caller)
    return today === this.#madeIn && today.evaluation(this.caller) === this.#madeOf
  }
}

const NARROW = shapeOf<NarrowOptions>({ activeTools: true, policy: true, facts: true })
const NO_USES: readonly LimitUseOf[] = []
const NONE: readonly string[] = Object.freeze([])

/** Returns an item, if the run shows it. */
function visibleIn({ evaluation: { snapshot, deny, wait } }: RunBounds, id: string): Tool | undefined {
  const index = snapshot.indexOf(id)
  const isVisible = index !== -1 && !hasBit(deny, index) && !hasBit(wait, index)
  return isVisible ? snapshot.tools[index] : undefined
}

/**
 * Returns the bounds of a run for the caller's current roles and scopes. The run's own restrictions stay as they were, so
 * no decision mixes old roles with a new policy.
 */
function asCaller(run: RunBounds, caller: Caller): RunBounds {
  return run.caller === caller || callerKey(run.caller) === callerKey(caller) ? run : { ...run, caller }
}

/** Returns the snapshot that decides the id of an item that is not a tool, listed or not. */
function snapshotFor(host: ViewHost, whole: PolicySnapshot, id: string): PolicySnapshot | undefined {
  const { items } = whole
  const set = items.has(id) ? items : host.unlisted.setFor(id, items)
  return set && whole.over(set)
}

/** Evaluates the bounds with today's availability, locks, pins and halts, and with later restrictions of policy and catalog. */
function evaluateToday(
  today: PolicySnapshot,
  current: Evaluation,
  { snapshot, effects }: Pick<ViewBounds, 'snapshot' | 'effects'>,
): Evaluation {
  return evaluate(snapshot, [
    ...effects(),
    ...projectEffects(current, snapshot),
    ...goneEffects(snapshot, today.snapshot),
  ])
}

function goneEffects(snapshot: Toolset, today: Toolset): readonly Effect[] {
  if (snapshot === today) return []
  const bits = bitsWhere(snapshot.size, (i) => !today.has(snapshot.ids[i] as string))
  const why = reason('catalog', 'tool_not_found', 'the catalog has it no more')
  return isEmpty(bits) ? [] : [{ outcome: 'deny', bits, reason: () => why }]
}

/** Returns the narrowed bounds of a step, a sub-agent or a token's run. @throws {ConfigError} for an invalid policy */
export function narrowBounds(
  host: ViewHost,
  bounds: ViewBounds,
  { activeTools, policy, facts }: NarrowOptions,
): ViewBounds {
  const { caller } = bounds
  if (activeTools !== undefined) host.checkNames(activeTools)
  const first = bounds.policies.length
  const parsed = policy === undefined ? [] : host.parsePolicy(policy)
  const inForce = facts ? [...bounds.policies, ...host.today(caller).policies] : []
  return tighten(bounds, (snapshot) => {
    const policies = parsed.map((one, i) => indexPolicy(one, first + i, snapshot))
    const effects = [
      ...(activeTools ? stepEffects(snapshot, activeTools) : []),
      ...policies.flatMap((index) => [...fixedEffects(index), ...callerEffects(index, caller)]),
      ...(facts
        ? [...indexesOver(inForce, snapshot), ...policies].flatMap((index) => factEffects(index, caller, facts))
        : []),
    ]
    return { effects, policies }
  })
}

/** Returns the indexes of policies over a snapshot, each once. */
function indexesOver(indexes: readonly PolicyIndex[], snapshot: Toolset): readonly PolicyIndex[] {
  const once = new Map(indexes.map((index) => [index.whole, index]))
  return [...once.values()].map((index) =>
    index.snapshot === snapshot ? index : indexPolicy(index.whole, index.position, snapshot),
  )
}

/** Returns tighter bounds. Tools are tightened at once, other items on demand. */
export function tighten(bounds: ViewBounds, narrowing: Narrowing): ViewBounds {
  const { effects, policies } = narrowing(bounds.snapshot)
  const all = [...bounds.effects(), ...effects]
  return {
    ...bounds,
    effects: () => all,
    policies: policies.length === 0 ? bounds.policies : [...bounds.policies, ...policies],
    narrowed: [...bounds.narrowed, narrowing],
  }
}
