import type { Tool, View } from '@toolgate/core'
import { toJsonText } from '@toolgate/values/json'
import { toListedTool } from '@toolgate/mcp'
import { nextTurn } from '../../util/next-turn.ts'
import type { NamedCaller } from '../http/callers.ts'
import type { Heart } from '../../heart/heart.ts'
import type { ListCostRow, OverviewBody } from '../../model/rows.ts'

/** The maximum number of agents whose lists are counted. */
const MAX_COUNTED = 500
const MAX_LISTS = 100
const BYTES_PER_TOKEN = 4
/** The turn of the event loop ends after this time, since creating a view may be slow. */
const TURN_MS = 5

/** The token costs of agents' lists. Each definition and each view is counted once. */
export interface ListCosts {
  /** Returns the most expensive lists of the first 500 agents, or of the first `max`. */
  all(
    agents: readonly NamedCaller[],
    heart: Pick<Heart, 'gate' | 'clock'>,
    max?: number,
  ): Promise<Pick<OverviewBody, 'lists' | 'moreLists'>>
  /** Estimates the tokens of one list. */
  tokensOf(view: View): number
}

export function createListCosts(): ListCosts {
  const ofTool = new WeakMap<Tool, number>()
  const ofView = new WeakMap<View, number>()

  function bytesOf(tool: Tool): number {
    const known = ofTool.get(tool)
    if (known !== undefined) return known
    const listed = toListedTool(tool, tool.id.replace(':', '__'))
    const bytes = listed === undefined ? 0 : Buffer.byteLength(toJsonText(listed))
    ofTool.set(tool, bytes)
    return bytes
  }

  function tokensOf(view: View): number {
    const known = ofView.get(view)
    if (known !== undefined) return known
    const bytes = view.tools.reduce((sum, tool) => sum + bytesOf(tool), 0)
    const tokens = Math.ceil(bytes / BYTES_PER_TOKEN)
    ofView.set(view, tokens)
    return tokens
  }

  async function all(
    agents: readonly NamedCaller[],
    { gate, clock }: Pick<Heart, 'gate' | 'clock'>,
    max = MAX_COUNTED,
  ): Promise<Pick<OverviewBody, 'lists' | 'moreLists'>> {
    const rows: ListCostRow[] = []
    let turnAt = clock.monotonicMs()
    for (const { name, caller } of agents.slice(0, max)) {
      const seen = await gate.view(caller)
      const { tenant } = caller
      rows.push({ user: name, ...(tenant !== undefined && { tenant }), tools: seen.size, tokens: tokensOf(seen) })
      if (clock.monotonicMs() - turnAt < TURN_MS) continue
      await nextTurn()
      turnAt = clock.monotonicMs()
    }
    const lists = rows.toSorted((a, b) => b.tokens - a.tokens).slice(0, MAX_LISTS)
    return { lists, moreLists: agents.length - lists.length }
  }

  return { all, tokensOf }
}
