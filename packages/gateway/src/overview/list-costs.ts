import { setImmediate as endOfTurn } from 'node:timers/promises'
import type { Tool, View } from '@toolgate/core'
import { toListedTool } from '@toolgate/mcp'
import type { NamedCaller } from '../api/callers.ts'
import type { ApiDeps } from '../api/deps.ts'
import type { ListCostRow, OverviewBody } from '../api/wire.ts'

/** Of how many agents the lists are counted. */
const MAX_COUNTED = 500
const MAX_LISTS = 100
const BYTES_PER_TOKEN = 4
/** After so many views the turn ends, since each may have to be made. */
const VIEWS_A_TURN = 20

/** Returns a function that returns what the lists of agents cost. It counts each definition and each view once. */
export function createListCosts() {
  const ofTool = new WeakMap<Tool, number>()
  const ofView = new WeakMap<View, number>()

  function bytesOf(tool: Tool): number {
    const known = ofTool.get(tool)
    if (known !== undefined) return known
    const listed = toListedTool(tool, tool.id.replace(':', '__'))
    const bytes = listed === undefined ? 0 : Buffer.byteLength(JSON.stringify(listed))
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

  return async (
    agents: readonly NamedCaller[],
    { view }: Pick<ApiDeps, 'view'>,
  ): Promise<Pick<OverviewBody, 'lists' | 'moreLists'>> => {
    const rows: ListCostRow[] = []
    for (const { name, caller } of agents.slice(0, MAX_COUNTED)) {
      const seen = await view(caller)
      const { tenant } = caller
      rows.push({ user: name, ...(tenant !== undefined && { tenant }), tools: seen.size, tokens: tokensOf(seen) })
      if (rows.length % VIEWS_A_TURN === 0) await endOfTurn()
    }
    const lists = rows.toSorted((a, b) => b.tokens - a.tokens).slice(0, MAX_LISTS)
    return { lists, moreLists: agents.length - lists.length }
  }
}
