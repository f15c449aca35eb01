import { countedAs, createUsesOfTool, type LimitUseOf, type ParsedLimit } from '@toolgate/core/call'
import { callerParts, createStates } from '@toolgate/core/internal'
import type { Caller, Tool } from '@toolgate/core'
import {
  type Clock,
  type HistoryStore,
  type MemoryCounters,
  type MemoryHistories,
  memoryHistories,
} from '@toolgate/core/stores'
import { type Group, type GroupState, memoryAvailability, type MemoryAvailability } from '@toolgate/core/groups'

/** Returns the stated availability of groups. A group that depends on an unavailable one is unavailable, too. */
export function statedAvailability(
  groups: ReadonlyMap<string, Group>,
  stated: Readonly<Record<string, boolean | GroupState>>,
  clock: Clock,
): MemoryAvailability {
  const states = new Map(
    Object.entries(stated).map(([name, state]) => [name, typeof state === 'boolean' ? { available: state } : state]),
  )
  const { all } = createStates(groups, (name) => [{ result: states.get(name) ?? AVAILABLE }], clock)
  return memoryAvailability(Object.fromEntries(all))
}

const AVAILABLE = { available: true }

/** Returns histories in which the labels are already raised. */
export function statedHistories(labels: readonly string[]): HistoryStore {
  const store: MemoryHistories = memoryHistories()
  if (labels.length === 0) return store
  return {
    ...store,
    open(id, opening) {
      const { nowMs, expiresAt } = opening
      const since = store.open(id, opening)
      if (since.version > 0) return since
      const items = labels.map((text) => ({ kind: 'label' as const, text, event: 'stated', atMs: nowMs }))
      store.add(id, { items, since, unlessChanged: false, nowMs, expiresAt })
      return store.read(id, undefined, nowMs) ?? since
    },
  }
}

/** The limits of some rules, by their text, such as `files:write_file:5/60`. */
export interface StatedLimits {
  readonly names: readonly string[]
  /** Uses up the limits of one tool, as stated. */
  use(counters: MemoryCounters, used: ReadonlyMap<string, number>, tool: Tool, caller: Caller): void
}

export function statedLimits(parsed: readonly ParsedLimit[]): StatedLimits {
  const usesOf = createUsesOfTool(parsed)
  return {
    names: [...new Set(parsed.map(({ selector, label }) => `${selector.text}:${label}`))],
    use(counters, used, tool, caller) {
      for (const use of usesOf(tool, { ...callerParts(caller), tool: countedAs(tool) })) {
        const amount = used.get(`${use.rule}:${use.label}`) ?? 0
        if (amount > 0) takeAll(counters, use, amount)
      }
    },
  }
}

/** A limit with a cost takes an amount at once; all others count calls. */
function takeAll(counters: MemoryCounters, { costing, ...use }: LimitUseOf, amount: number): void {
  if (costing) counters.take([{ ...use, cost: amount }])
  else for (let taken = 0; taken < Math.min(amount, use.max); taken++) counters.take([use])
}
