import { type JsonObject, readOwnJson, toJsonText } from '@toolgate/values/json'
import type { Caller, Tool, View } from '@toolgate/core'
import { titleOf } from '@toolgate/core/tools'
import type { MayStill } from '@toolgate/core/decide'
import { refusedNow } from '@toolgate/core/call'
import type { ItemKind } from '@toolgate/core/toolset'
import { nextTurn } from '../../util/next-turn.ts'
import type { Heart } from '../../heart/heart.ts'
import { wireNameOf } from '../http/wire-name.ts'
import { readsRules, reasonFor } from '../http/rule-text.ts'
import type { MayStillRow, ToolRow } from '../../model/rows.ts'

/** A view's decision about one tool. Equal decisions of a view are one object. */
export interface RowDecision extends Pick<ToolRow, 'outcome' | 'visible' | 'mayStill'> {
  /** The deciding reason, for people; empty if no reason is needed because the tool is allowed. */
  readonly why: string
  /** The decision's fields of a `ToolRow`, as JSON without the braces. */
  readonly json: string
}

/** A catalog with a view's decisions, in the order of the tools. */
interface DecidedTools {
  readonly view: View
  readonly tools: readonly Tool[]
  readonly rows: readonly RowDecision[]
}

type RowsHeart = Pick<Heart, 'gate' | 'catalog' | 'revisions' | 'redact'>
type KeptList = Omit<DecidedTools, 'view'>

interface WriteOptions {
  readonly kind: ItemKind
  readonly hashOf: (tool: Tool) => string | undefined
}

/** The fields of a tool that are the same for every caller, each as JSON. */
interface ToolText {
  readonly id: string
  readonly title?: string
  readonly description: string
  readonly tags: string
}

/** A tool with its JSON texts. */
interface DecidedItem {
  readonly tool: Tool
  readonly text: ToolText
  readonly wireName: string
  readonly hash: string | undefined
  readonly decision: RowDecision
}

/** The number of tools in one turn of the event loop, so that a large catalog does not delay calls. */
const TOOLS_A_TURN = 250
/** The maximum number of cached decision lists. Each has a pointer for each tool. */
const MAX_KEPT = 64
/** How often a list is decided again if its rules changed meanwhile. */
const MAX_ROUNDS = 3

/**
 * Decides about all tools of a catalog for a caller, and writes the result as JSON. Both are cached until the rules
 * change.
 */
export class ToolRows {
  readonly #heart: RowsHeart
  /** Cached lists: `whole` for people who may read the text of rules, `withheld` for others. */
  readonly #decided = { whole: new Map<View, KeptList>(), withheld: new Map<View, KeptList>() }
  #texts = { revision: -1, ofTool: new WeakMap<Tool, ToolText>() }

  constructor(heart: RowsHeart) {
    this.#heart = heart
  }

  /** Returns the decisions in the order of the tools, and the view that made them. All use the same rules. */
  async decide(
    { caller, app, person }: { readonly caller: Caller; readonly app?: string | undefined; readonly person: Caller },
    toolsOf: () => readonly Tool[],
  ): Promise<DecidedTools> {
    const decidedBefore = this.#decided[readsRules(person) ? 'whole' : 'withheld']
    for (let round = 1; ; round++) {
      const view = await this.#heart.gate.view(caller, { app })
      const tools = toolsOf()
      const known = decidedBefore.get(view)
      if (known && isSameList(known.tools, tools)) {
        keep(decidedBefore, view, known)
        return { view, ...known }
      }
      const rows = await decideAll(view, tools, person)
      // A change of the rules ends the view, and its last rows may already use the new rules.
      const isSame = (await this.#heart.gate.view(caller, { app })) === view && isSameList(toolsOf(), tools)
      if (isSame) keep(decidedBefore, view, { tools, rows })
      if (isSame || round >= MAX_ROUNDS) return { view, tools, rows }
    }
  }

  /** Returns the `ToolRow`s of one kind as JSON. */
  async write(decided: DecidedTools, options: WriteOptions): Promise<string> {
    const parts: string[] = []
    await this.#each(decided, options, ({ tool, text, wireName, hash, decision }) => {
      const { id, title, description, tags } = text
      const own = hash === undefined ? '' : `,"hash":${JSON.stringify(hash)}`
      const named = title === undefined ? '' : `,"title":${title}`
      const fields = `"id":${id},"kind":"${tool.kind}"${named},"description":${description},"tags":${tags}`
      parts.push(`{${fields},"wireName":${JSON.stringify(wireName)}${own},${decision.json}}`)
    })
    return listOf(parts)
  }

  /** Returns the same data as `ToolColumns`, as JSON. */
  async writeColumns(decided: DecidedTools, options: WriteOptions): Promise<string> {
    const [decisions, tagSets] = [new Distinct(), new Distinct()]
    const ids: string[] = []
    const descriptions: string[] = []
    const titles: string[] = []
    const wireNames: string[] = []
    const hashes: string[] = []
    const decision: number[] = []
    const tags: number[] = []
    const isUsed = { title: false, wireName: false, hash: false }
    await this.#each(decided, options, (item) => {
      const { tool, text, wireName, hash } = item
      ids.push(text.id)
      descriptions.push(text.description)
      titles.push(text.title ?? '""')
      wireNames.push(wireName)
      hashes.push(hash ?? '')
      decision.push(decisions.placeOf(item.decision.json))
      tags.push(tagSets.placeOf(text.tags))
      isUsed.title ||= text.title !== undefined
      isUsed.wireName ||= wireName !== tool.id.replace(':', '__')
      isUsed.hash ||= hash !== undefined
    })
    const columns = [
      `"decisions":${listOf(decisions.list().map((fields) => `{${fields}}`))}`,
      `"tagSets":${listOf(tagSets.list())}`,
      `"id":${listOf(ids)},"description":${listOf(descriptions)}`,
      `"decision":${listOf(decision)},"tags":${listOf(tags)}`,
      ...(isUsed.title ? [`"title":${listOf(titles)}`] : []),
      ...(isUsed.wireName ? [`"wireName":${JSON.stringify(wireNames)}`] : []),
      ...(isUsed.hash ? [`"hash":${JSON.stringify(hashes)}`] : []),
    ]
    return `{${columns.join(',')}}`
  }

  async #each(
    { view, tools, rows }: DecidedTools,
    { kind, hashOf }: WriteOptions,
    add: (item: DecidedItem) => void,
  ): Promise<void> {
    const textOf = this.#textsNow()
    let added = 0
    for (const [i, tool] of tools.entries()) {
      const decision = rows[i]
      if (!decision || tool.kind !== kind) continue
      const named = tool.uri ?? wireNameOf(this.#heart, tool.id, view) ?? ''
      add({ tool, text: textOf(tool), wireName: named, hash: hashOf(tool), decision })
      if (++added % TOOLS_A_TURN === 0) await nextTurn()
    }
  }

  /**
   * Returns a function that returns the texts of a tool for every caller. A reload may add secrets, which are then
   * redacted too.
   */
  #textsNow(): (tool: Tool) => ToolText {
    const revision = this.#heart.revisions.current.number
    if (revision !== this.#texts.revision) this.#texts = { revision, ofTool: new WeakMap() }
    const { ofTool } = this.#texts
    const { redactText } = this.#heart.redact
    return (tool) => {
      const known = ofTool.get(tool)
      if (known !== undefined) return known
      const title = titleOf(tool)
      const text = {
        id: JSON.stringify(tool.id),
        ...(title === undefined ? {} : { title: JSON.stringify(redactText(title)) }),
        description: JSON.stringify(redactText(tool.description)),
        tags: JSON.stringify(tool.tags),
      }
      ofTool.set(tool, text)
      return text
    }
  }
}

function keep(decided: Map<View, KeptList>, view: View, list: KeptList): void {
  decided.delete(view)
  decided.set(view, list)
  const [oldest] = decided.keys()
  if (decided.size > MAX_KEPT && oldest) decided.delete(oldest)
}

function isSameList(a: readonly Tool[], b: readonly Tool[]): boolean {
  return a === b || (a.length === b.length && a.every((tool, i) => tool === b[i]))
}

/** Returns the outcomes that a call may still get, each once, with the facts they depend on. */
export function shortMayStill(found: readonly MayStillRow[]): Pick<ToolRow, 'mayStill'> {
  const rows = new Map(found.map(({ outcome, on }) => [`${outcome} ${on}`, { outcome, on }]))
  return rows.size === 0 ? {} : { mayStill: [...rows.values()] }
}

/**
 * Adds the current reasons for refusing calls to the decisions. `places`: the indexes of the items to check. Default:
 * all.
 */
export async function withRefusals(decided: DecidedTools, places?: readonly number[]): Promise<DecidedTools> {
  const { view, tools, rows } = decided
  const asked = (places ?? [...tools.keys()]).filter((at) => rows[at]?.visible)
  const refused = await refusedNow(
    view,
    asked.flatMap((at) => tools[at]?.id ?? []),
    { rest: nextTurn },
  )
  if (refused.size === 0) return decided
  const refusing = rows.map((row, at) => {
    const now = refused.get(tools[at]?.id ?? '')
    return now ? withMore(row, now) : row
  })
  return { ...decided, rows: refusing }
}

function withMore({ json, ...row }: RowDecision, now: readonly MayStill[]): RowDecision {
  const short = shortMayStill([...(row.mayStill ?? []), ...now])
  const fields = { ...(readOwnJson(`{${json}}`, 'exact') as JsonObject), ...short }
  return { ...row, ...short, json: toJsonText(fields).slice(1, -1) }
}

async function decideAll(view: View, tools: readonly Tool[], person: Caller): Promise<readonly RowDecision[]> {
  const known = new Map<string, RowDecision>()
  const rows: RowDecision[] = []
  for (const { id } of tools) {
    const { outcome, reasons: given, mayStill: found } = view.explain(id)
    const reasons = given.map((one) => reasonFor(person, one))
    const visible = view.has(id)
    // The current reasons are determined again for each list.
    const open = shortMayStill(found.filter(({ on }) => on !== 'now'))
    const json = toJsonText({ outcome, visible, reasons, ...open }).slice(1, -1)
    const row = known.get(json) ?? { outcome, visible, why: reasons[0]?.text ?? '', json, ...open }
    known.set(json, row)
    rows.push(row)
    if (rows.length % TOOLS_A_TURN === 0) await nextTurn()
  }
  return rows
}

/** Returns a JSON array of values that are already JSON. */
function listOf(values: readonly (string | number)[]): string {
  return `[${values.join(',')}]`
}

/** Collects distinct texts. Each has an index, in the order in which they were first seen. */
class Distinct {
  readonly #places = new Map<string, number>()

  placeOf(text: string): number {
    const known = this.#places.get(text)
    if (known !== undefined) return known
    this.#places.set(text, this.#places.size)
    return this.#places.size - 1
  }

  list(): readonly string[] {
    return [...this.#places.keys()]
  }
}
