import { setImmediate as endOfTurn } from 'node:timers/promises'
import type { Caller, Tool, View } from '@toolgate/core'
import { titleOf } from '@toolgate/core/internal'
import { redactor } from '@toolgate/core/redact'
import type { ItemKind } from '@toolgate/core/toolset'
import type { ApiDeps } from './deps.ts'
import type { ToolRow } from './wire.ts'

/** What a view decides about one tool. Equal decisions of a view are one object. */
export interface RowDecision extends Pick<ToolRow, 'outcome' | 'visible'> {
  /** The deciding reason, for people; empty for a plain allow. */
  readonly why: string
  /** Its fields of a `ToolRow`, as JSON without the braces. */
  readonly json: string
}

/** A catalog as a view decides about it: the decisions are in the order of the tools. */
export interface DecidedTools {
  readonly view: View
  readonly tools: readonly Tool[]
  readonly rows: readonly RowDecision[]
}

interface WriteOptions {
  readonly kind: ItemKind
  readonly hashOf: (tool: Tool) => string | undefined
}

/** After so many tools the turn ends, so that a large catalog does not delay calls. */
const TOOLS_A_TURN = 250
/** How many lists of decisions are kept: a pointer for each tool. */
const MAX_KEPT = 64
/** How often a list is decided again whose rules changed meanwhile. */
const MAX_ROUNDS = 3

/** Decides about all tools of a catalog for a caller, and writes them as JSON. Both are kept while the rules stay. */
export class ToolRows {
  readonly #deps: ApiDeps
  readonly #decided = new Map<View, Omit<DecidedTools, 'view'>>()
  #texts = { revision: -1, ofTool: new WeakMap<Tool, string>() }

  constructor(deps: ApiDeps) {
    this.#deps = deps
  }

  /** Returns the decisions in the order of the tools, all by the same rules, with the view that has them. */
  async decide(
    { caller, app }: { readonly caller: Caller; readonly app?: string | undefined },
    toolsOf: () => readonly Tool[],
  ): Promise<DecidedTools> {
    for (let round = 1; ; round++) {
      const view = await this.#deps.view(caller, app)
      const tools = toolsOf()
      const known = this.#decided.get(view)
      if (known && isSameList(known.tools, tools)) {
        this.#keep(view, known)
        return { view, ...known }
      }
      const rows = await decideAll(view, tools)
      // A change of the rules ends the view, and its last rows may be by the new ones.
      const isSame = (await this.#deps.view(caller, app)) === view && isSameList(toolsOf(), tools)
      if (isSame) this.#keep(view, { tools, rows })
      if (isSame || round >= MAX_ROUNDS) return { view, tools, rows }
    }
  }

  /** Returns the `ToolRow`s of one kind as JSON. */
  async write({ view, tools, rows }: DecidedTools, { kind, hashOf }: WriteOptions): Promise<string> {
    const parts: string[] = []
    const textOf = this.#textsNow()
    for (const [i, tool] of tools.entries()) {
      const decision = rows[i]
      if (!decision || tool.kind !== kind) continue
      const hash = hashOf(tool)
      const wireName = JSON.stringify(tool.uri ?? this.#deps.wireName(tool.id, view) ?? '')
      const own = hash === undefined ? '' : `,"hash":${JSON.stringify(hash)}`
      parts.push(`{${textOf(tool)},"wireName":${wireName}${own},${decision.json}}`)
      if (parts.length % TOOLS_A_TURN === 0) await endOfTurn()
    }
    return `[${parts.join(',')}]`
  }

  #keep(view: View, list: Omit<DecidedTools, 'view'>): void {
    this.#decided.delete(view)
    this.#decided.set(view, list)
    const [oldest] = this.#decided.keys()
    if (this.#decided.size > MAX_KEPT && oldest) this.#decided.delete(oldest)
  }

  /** Returns a function that writes what every caller sees of a tool. A reload may bring secrets, which are then redacted, too. */
  #textsNow(): (tool: Tool) => string {
    const revision = this.#deps.policy?.().revision ?? 0
    if (revision !== this.#texts.revision) this.#texts = { revision, ofTool: new WeakMap() }
    const { ofTool } = this.#texts
    const { redactText } = this.#deps.redact ?? redactor
    return (tool) => {
      const known = ofTool.get(tool)
      if (known !== undefined) return known
      const { id, kind, tags } = tool
      const title = titleOf(tool)
      const fields = {
        id,
        kind,
        ...(title === undefined ? {} : { title: redactText(title) }),
        description: redactText(tool.description),
        tags,
      } satisfies Partial<ToolRow>
      const text = JSON.stringify(fields).slice(1, -1)
      ofTool.set(tool, text)
      return text
    }
  }
}

function isSameList(a: readonly Tool[], b: readonly Tool[]): boolean {
  return a === b || (a.length === b.length && a.every((tool, i) => tool === b[i]))
}

async function decideAll(view: View, tools: readonly Tool[]): Promise<readonly RowDecision[]> {
  const known = new Map<string, RowDecision>()
  const rows: RowDecision[] = []
  for (const { id } of tools) {
    const { outcome, reasons } = view.explain(id)
    const visible = view.has(id)
    const json = JSON.stringify({ outcome, visible, reasons }).slice(1, -1)
    const row = known.get(json) ?? { outcome, visible, why: reasons[0]?.text ?? '', json }
    known.set(json, row)
    rows.push(row)
    if (rows.length % TOOLS_A_TURN === 0) await endOfTurn()
  }
  return rows
}
