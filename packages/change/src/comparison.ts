import type { CallPreview } from '@toolgate/core/toolset'
import { compareStrictness } from '@toolgate/core/decide'
import type { Caller, Gate, OutcomeWord, Tool, View } from '@toolgate/core'
import { probeInputs, toCallView } from '@toolgate/core/call'
import type { CelNode } from '@toolgate/values/cel'
import { readOwnJson } from '@toolgate/values/json'
import { callerReads } from './caller-reads.ts'
import { nameOfCaller } from './recorded-callers.ts'
import { grantsNoMore, groundsOf, type Restrictions, restrictionsOn } from './restrictions.ts'
import {
  anyCaller,
  nameOfSupposed,
  type OtherCallers,
  type SupposedCaller,
  supposedCallers,
} from './supposed-callers.ts'
import type { Both } from './side.ts'

/** A call that is decided less strictly after the change than before. */
export interface MoreGranted {
  readonly caller: string
  /** A possible caller that is not configured. */
  readonly supposed?: Caller
  readonly tool: string
  readonly before: OutcomeWord
  readonly after: OutcomeWord
  /** The input of the call. Absent: any. */
  readonly input?: unknown
  /** Both outcomes ask for approval, but now somebody may approve who could not before. */
  readonly weakerApproval?: true
}

/** What cannot be compared. */
export interface NotCompared {
  readonly caller: string
  /** Empty: it is not about tools. */
  readonly tools: readonly string[]
  readonly why: string
}

/** The rules of one side. */
export interface ComparedSide {
  readonly gate: Gate
  /** A gate without function policies, whose answers are unknown. */
  readonly plain: Gate
  /** The text of the other inputs of conditions about runs: matched tools and sources of labels. */
  readonly ground: string
  readonly stepUp: readonly string[]
}

type ComparedAnswer = 'yes' | 'unknown' | Pick<MoreGranted, 'before' | 'after' | 'input' | 'weakerApproval'>

interface ComparisonOptions {
  readonly onProgress?: (() => Promise<void> | undefined) | undefined
  readonly signal?: AbortSignal | undefined
}

const MAX_COUNTEREXAMPLES = 100
const REST_EVERY = 100
/** A limit, because each supposed caller needs a view of the whole catalog. */
const MAX_SUPPOSED = 8192
const MAX_PROBED = 500
const CONDITIONS = 'conditions over inputs or runs differ'

/** Compares two sets of rules item by item: for any caller, for known callers, and for callers of every kind. */
export class Comparison {
  readonly counterexamples: MoreGranted[] = []
  readonly notCompared: NotCompared[] = []
  readonly #sides: Both<ComparedSide>
  readonly #options: ComparisonOptions
  readonly #scopes: readonly string[]
  readonly #ids: readonly string[]
  /** The listed items of both catalogs. */
  readonly items: readonly Tool[]
  readonly #refuted = new Set<string>()
  #supposedLeft = MAX_SUPPOSED
  #probedLeft = MAX_PROBED

  constructor(sides: Both<ComparedSide>, options: ComparisonOptions) {
    this.#sides = sides
    this.#options = options
    this.items = [sides.before, sides.after].flatMap(({ gate: { catalog } }) => [
      ...catalog.snapshot(),
      ...catalog.items(),
    ])
    this.#ids = [...new Set(this.items.map(({ id }) => id))]
    this.#scopes = [...new Set(this.items.flatMap(({ requiredScopes }) => requiredScopes))]
  }

  /**
   * Returns the items for which the answer depends on the caller, or on parts that cannot be compared. `unlisted`: ids of
   * additional items.
   */
  async findOpen(unlisted: readonly string[] = []): Promise<readonly string[]> {
    const anybody = anyCaller(this.#scopes)
    const views = await this.#viewsOf(anybody)
    const open: string[] = []
    for (const [i, id] of [...new Set([...this.#ids, ...unlisted])].entries()) {
      if (i % REST_EVERY === 0) await this.#rest()
      const { before, after } = this.#restrictions(views, anybody, id)
      if (grantsNoMore(before, after) !== 'yes') open.push(id)
    }
    return open
  }

  /** Compares the items for fully known callers. */
  async askKnown(ids: readonly string[], callers: readonly Caller[]): Promise<void> {
    for (const caller of ids.length === 0 ? [] : callers) {
      const views = await this.#realViewsOf(caller)
      const name = `${nameOfCaller(caller)}${caller.session === undefined ? '' : ' in a session'}`
      const unknown: string[] = []
      for (const id of ids) {
        const found = await this.#compareFor(caller, views, id, true)
        if (found === 'unknown') unknown.push(id)
        else if (found !== 'yes') this.#note({ caller: name, tool: id, ...found })
      }
      if (unknown.length > 0) this.notCompared.push({ caller: name, tools: unknown, why: CONDITIONS })
      await this.#rest()
    }
  }

  /** Compares the items for callers of every kind that the rules can tell apart. */
  async askOthers(ids: readonly string[], others: OtherCallers): Promise<void> {
    const anybody = await this.#viewsOf(anyCaller(this.#scopes))
    const groups = Map.groupBy(
      ids.filter((id) => !this.#refuted.has(id)).map((id) => readsOf(anybody, id)),
      ({ key }) => key,
    )
    for (const group of groups.values()) {
      const [{ reads, scopes } = NOTHING] = group
      const { callers, unknown } = supposedCallers(reads, scopes, others)
      const open = new Set<string>()
      const left = new Set(group.map(({ id }) => id))
      for (const caller of callers) {
        if (left.size === 0 || this.#supposedLeft-- <= 0) break
        const views = await this.#viewsOf(caller)
        for (const id of left) {
          const { before, after } = this.#restrictions(views, caller, id)
          if (grantsNoMore(before, after) === 'yes') continue
          const example = await this.#findExample(caller, id)
          if (example) this.#note(example)
          if (example) left.delete(id)
          else open.add(id)
        }
        await this.#rest()
      }
      const tools = this.#supposedLeft < 0 ? [...left] : [...open].filter((id) => left.has(id))
      if (tools.length > 0)
        this.notCompared.push({ caller: 'anybody', tools, why: whyOpen(unknown, this.#supposedLeft) })
    }
  }

  #note(example: MoreGranted): void {
    this.#refuted.add(example.tool)
    if (this.counterexamples.length < MAX_COUNTEREXAMPLES) this.counterexamples.push(example)
  }

  async #rest(): Promise<void> {
    this.#options.signal?.throwIfAborted()
    await this.#options.onProgress?.()
  }

  async #viewsOf({ lax }: SupposedCaller): Promise<Both<View>> {
    return { before: await this.#sides.before.plain.view(lax), after: await this.#sides.after.plain.view(lax) }
  }

  async #realViewsOf(caller: Caller): Promise<Both<View>> {
    return { before: await this.#sides.before.gate.view(caller), after: await this.#sides.after.gate.view(caller) }
  }

  #restrictions(
    views: Both<View>,
    { strict, hasKnownScopes }: Pick<SupposedCaller, 'strict' | 'hasKnownScopes'>,
    id: string,
  ): Both<Restrictions> {
    const of = (side: 'before' | 'after') => {
      const { ground, stepUp } = this.#sides[side]
      return restrictionsOn({ view: toCallView(views[side]), strict, hasKnownScopes, stepUp }, id, ground)
    }
    return { before: of('before'), after: of('after') }
  }

  async #compareFor(caller: Caller, views: Both<View>, id: string, probes: boolean): Promise<ComparedAnswer> {
    const { before, after } = this.#restrictions(views, { strict: caller, hasKnownScopes: true }, id)
    const answer = grantsNoMore(before, after)
    if (answer === 'yes') return 'yes'
    const words = { before: before.listed.outcome, after: after.listed.outcome }
    if (answer === 'approval') return { ...words, weakerApproval: true }
    if (answer === 'no') return words
    await this.#rest()
    const tool = views.after.get(id) ?? views.before.get(id)
    for (const input of probes && tool ? probeInputs(tool, [...conditionsOf(before), ...conditionsOf(after)]) : []) {
      const had = await wordOfCall(views.before, id, input)
      const has = await wordOfCall(views.after, id, input)
      if (compareStrictness(has, had) > 0) return { before: had, after: has, input }
    }
    return 'unknown'
  }

  /** Tries example callers of the supposed kind on both gates. */
  async #findExample({ examples }: SupposedCaller, id: string): Promise<MoreGranted | undefined> {
    for (const caller of examples) {
      const views = await this.#realViewsOf(caller)
      const found = await this.#compareFor(caller, views, id, this.#probedLeft-- > 0)
      if (typeof found === 'object') return { caller: nameOfSupposed(caller), supposed: caller, tool: id, ...found }
    }
    return undefined
  }
}

/** Returns the conditions over input and run, as written. */
function conditionsOf({ deny, ask, allow }: Restrictions): readonly string[] {
  const texts = [...deny, ...ask.map(({ text }) => text), ...allow.flatMap((list) => [...list])]
  return texts.flatMap((text) => (readOwnJson(text) as readonly unknown[]).filter((part) => typeof part === 'string'))
}

/** Returns what the rules of both sides read of callers for an item. */
function readsOf(views: Both<View>, id: string) {
  const grounds = [views.before, views.after].map((view) => groundsOf(toCallView(view), id))
  const trees = grounds.flatMap(({ conditions }) => conditions.flatMap(({ tree }): CelNode[] => (tree ? [tree] : [])))
  const reads = callerReads(trees)
  const scopes = [...new Set(grounds.flatMap((one) => one.scopes))].toSorted()
  const texts = [...reads].map(([path, values]) => JSON.stringify([path, values && [...values].map(String).toSorted()]))
  return { id, reads, scopes, key: JSON.stringify([texts.toSorted(), scopes]) }
}

const NOTHING = { reads: new Map(), scopes: [] }

function whyOpen(unknown: readonly string[], supposedLeft: number): string {
  if (supposedLeft < 0) return 'too many kinds of callers to ask about'
  if (unknown.length === 0) return CONDITIONS
  return `rules tell callers apart in too many ways, or in ways that cannot be listed, by ${unknown.map((path) => (path.includes('\u{f8ff}') ? 'a function' : path)).join(', ')}`
}

async function wordOfCall(view: View, tool: string, input: unknown): Promise<OutcomeWord> {
  const preview: CallPreview = await view.preview({ tool, input, run: { id: 'compare' } })
  return preview.status === 'refused' ? preview.decision.outcome : preview.status
}
