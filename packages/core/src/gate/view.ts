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
import { isItemId, type ItemKind, RESOURCE_PREFIX } from '../tools/tool-id.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { checkShape, shapeOf } from '@toolgate/values'

/** The tools that one caller sees in one run: an immutable snapshot. */
export interface View<Name extends string = string> {
  readonly caller: Caller
  /** The app that it is of, by name. */
  readonly app: string | undefined
  /** The visible tools, in the order of their ids. */
  readonly tools: readonly Tool[]
  readonly ids: readonly string[]
  readonly size: number
  /** Hash of the visible tools' definitions, 32 hex digits: equal views have equal bytes. */
  readonly fingerprint: string
  /** Why the view is empty, where this run's visibility failed. */
  readonly failure: string | undefined
  /** The names that this run's visibility added to what it was given. They are not shown; for the developer. */
  readonly foreign: readonly string[]
  /** Texts for the instructions: messages of denials, hints of locked groups. */
  readonly notices: readonly string[]
  /** The visible items of a kind, in the order of their ids. Templates are a kind of their own. */
  items(kind: ItemKind): readonly Tool[]
  /** Whether an item of any kind is visible. A resource need not be listed. */
  has(id: string): boolean
  get(id: string): Tool | undefined
  /** Every layer's answer about a tool, the deciding one first. For people; never for the model. */
  explain(id: string): Explanation
  /**
   * Returns a tighter view, for a step or a sub-agent; locks and availability are read again. Returns this view
   * where nothing narrows it and nothing has changed.
   *
   * @throws {UnknownToolError} for a name in `activeTools` that the catalog has never seen
   * @throws {ConfigError} for a policy that cannot be used
   */
  narrow(options: NarrowOptions<Name>): View<Name>
  call(request: CallRequest<Name>): Promise<CallOutcome>
  /**
   * Asks a person for a call that runs only with their word, and runs nothing: for frameworks whose own loop pauses
   * for approvals. `undefined`: nobody has to be asked, or a person has approved. Then make the call, which is decided
   * again.
   */
  requestApproval(request: CallRequest<Name>): Promise<CallRefused | CallWaiting | undefined>
  /**
   * Returns what a call would get if it were made now: by its decision, its input and its limits. It runs nothing, takes
   * nothing, asks neither hooks nor people, and leaves no record. The call itself is decided again.
   */
  preview(request: CallRequest<Name>): Promise<CallPreview>
  /**
   * Ranks by a query what this view sees and may still see today: tools, or the items of `kinds`. What is hidden leaves no
   * trace in the answer.
   *
   * @throws {ToolgateError} `query_invalid`
   */
  search(query: string, options?: ItemSearchOptions): readonly SearchHit[]
}

export interface NarrowOptions<Name extends string = string> {
  /** Ids. `[]` means none. */
  readonly activeTools?: readonly Name[] | undefined
  readonly policy?: Policies<Name> | undefined
  /** What the run has done: tools that rules deny because of it are not offered. Each call is decided again. */
  readonly facts?: RunFacts | undefined
}

/** The gate, as its views use it. */
export interface ViewHost {
  readonly ports: CallPorts
  /** The app whose rules hold here. */
  readonly app: string | undefined
  readonly today: Today
  /** The current groups. */
  groups(): Groups
  /** The current rules. */
  readonly rules: { readonly now: { readonly usesOf: UsesOf } }
  parsePolicy(policy: Policies): readonly ParsedPolicy[]
  checkNames(names: readonly string[]): void
  readonly unlisted: Unlisted
}

/** The items that a view sees in today's snapshot, computed at the first search. */
interface VisibleNow {
  readonly today: PolicySnapshot
  tools?: Visible
  items?: Visible
}

/** What tightens a run's bounds: the effects and the policies of it over any items. */
export type Narrowing = (snapshot: Toolset) => {
  readonly effects: readonly Effect[]
  readonly policies: readonly PolicyIndex[]
}

/** The bounds of a run, before availability, locks, pins and halts. */
export interface ViewBounds {
  readonly caller: Caller
  readonly snapshot: Toolset
  /** Computed on demand: a view that is not narrowed needs its evaluation only. */
  readonly effects: () => readonly Effect[]
  readonly policies: readonly PolicyIndex[]
  /** The snapshot in which the run began, and everything that has tightened it since: its bounds over other items. */
  readonly begun: PolicySnapshot
  /** Whether what happens in runs was kept then. */
  readonly kept: Kept
  readonly narrowed: readonly Narrowing[]
  readonly failure: string | undefined
  readonly foreign?: readonly string[]
}

/** Returns the ports of a view's gate; `undefined` for any other object. */
export function portsOf(view: object): CallPorts | undefined {
  return CallerView.portsOf(view)
}

/** Returns a view as its calls ask it. @throws {TypeError} for an object that no gate has made */
export function toCallView(view: View): CallView {
  if (view instanceof CallerView) return view
  throw new TypeError('a view of a gate is needed')
}

/** Returns the view of some bounds today. `evaluation` is the result of both, where that is known already. */
export function createView(host: ViewHost, bounds: ViewBounds, evaluation?: Evaluation): View {
  const today = host.today(bounds.caller)
  const current = today.evaluation(bounds.caller)
  const evaluated = resolveRequestTool(evaluation ?? evaluateToday(today, current, bounds))
  return Object.freeze(new CallerView(host, bounds, evaluated, today, current))
}

/**
 * A class, as a literal with getters costs a hidden class of its own for each view. Its lists are computed when
 * they are first asked for: a view that only calls never needs them. What a host calls can be taken apart from it.
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
  /** The snapshot that the view was made in, with its evaluation for the caller. While both are current, a new view would equal it. */
  readonly #madeIn: PolicySnapshot
  readonly #madeOf: Evaluation
  /** The decisions on tools that were called. Each holds while its snapshot is today's. */
  readonly #decided = new Map<string, Decided>()
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
    const decided = isItemId(id) ? toDecidedId(id, this.#bounds.begun.items) : id
    const run = isItemId(id) ? this.#runOf(this.#bounds.begun, decided) : this.#run
    const index = run ? run.evaluation.snapshot.indexOf(decided) : -1
    return run && index !== -1 && hasBit(run.evaluation.visible.bits, index)
      ? run.evaluation.snapshot.tools[index]
      : undefined
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

  /** A token's run is the token's: nobody who calls with it names another one. A resource is named as it is decided. */
  ofRun(request: CallRequest): CallRequest {
    const { run: id } = this.caller
    const isResource = typeof request?.tool === 'string' && request.tool.startsWith(RESOURCE_PREFIX)
    const decided = isResource ? toDecidedRequest(request, this.#bounds.begun.items) : request
    if (id === undefined) return decided
    const run = this.#host.ports.runs?.of(this.caller)?.run
    // What a run that is over has done is unknown.
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
    const known = caller === undefined && id !== undefined ? this.#decided.get(id) : undefined
    if (known?.today === today) return known
    const decided = decide(caller === undefined ? this.#run : asCaller(this.#run, caller), today, id)
    if (decided.tool === undefined && isItemId(id))
      return this.#decideItem(today, toDecidedId(id, this.#bounds.begun.items), caller)
    // Within a snapshot only a session's locks can open.
    if (decided.tool !== undefined && caller === undefined && this.caller.session === undefined)
      this.#decided.set(decided.tool.id, decided)
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

  /** Returns the bounds of the run over other items than tools, as they were when it began, and all that has narrowed it. */
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
    // A resource that is not listed is decided again by today's policy in each decision, and is in no list.
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

/**
 * Returns the bounds of a run for its caller as they are now. The run's own part of the decision stays as it was: nobody is
 * decided by the old roles and the new policy.
 */
function asCaller(run: RunBounds, caller: Caller): RunBounds {
  return run.caller === caller || callerKey(run.caller) === callerKey(caller) ? run : { ...run, caller }
}

/** Returns the snapshot that decides an id of another kind: of what is listed, or of a resource that is not. */
function snapshotFor(host: ViewHost, whole: PolicySnapshot, id: string): PolicySnapshot | undefined {
  const { items } = whole
  const set = items.has(id) ? items : host.unlisted.setFor(id, items)
  return set && whole.over(set)
}

/** The bounds, what is held back now, and whatever policy and catalog have come to refuse since. */
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

/** Returns the bounds that a step, a sub-agent or a run of a token narrows. @throws {ConfigError} for a policy that cannot be used */
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

/** Returns policies over a snapshot, each once. */
function indexesOver(indexes: readonly PolicyIndex[], snapshot: Toolset): readonly PolicyIndex[] {
  const once = new Map(indexes.map((index) => [index.whole, index]))
  return [...once.values()].map((index) =>
    index.snapshot === snapshot ? index : indexPolicy(index.whole, index.position, snapshot),
  )
}

/** Returns tighter bounds: over the tools at once, and over other items when they are asked for. */
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
