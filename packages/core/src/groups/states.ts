import type { Clock, GroupState } from '../ports/ports.ts'
import { orderGroups, type Group } from '../tools/groups.ts'

/** The checked result of a probe. */
export interface ProbeResult {
  readonly available: boolean
  readonly reason?: string
  readonly detail?: string
  readonly suggestion?: string
}

/** The states of all groups. */
interface States {
  readonly all: ReadonlyMap<string, GroupState>
  /** Updates some groups and the groups that require them. Returns those that changed. */
  settle(names: Iterable<string>): readonly string[]
}

interface GroupNode {
  readonly name: string
  readonly group: Group
  /** Its position in an order in which each group comes after the groups that it requires. */
  readonly place: number
  readonly requires: readonly string[]
  readonly requiredBy: string[]
}

export const NOT_CHECKED = 'it has not been checked yet'

/**
 * Returns the states of groups. Those in `before` keep the time of their last change. A group is available while all its probes succeed and all groups it requires are available.
 *
 * @throws {ConfigError} for an unknown dependency, and for a cycle
 */
export function createStates(
  groups: ReadonlyMap<string, Group>,
  resultsOf: (group: string) => readonly { readonly result: ProbeResult | undefined }[],
  clock: Clock,
  before: ReadonlyMap<string, GroupState> = new Map(),
): States {
  const nodes = link(groups)
  const all = new Map<string, GroupState>([...before].filter(([name]) => groups.has(name)))
  const settleOne = ({ name, group, requires }: GroupNode): boolean => {
    const state = stateOf(group, resultsOf(name), requires, all)
    const next = carryOn(all.get(name), state, clock)
    if (next === all.get(name)) return false
    all.set(name, next)
    return true
  }
  const settle = (names: Iterable<string>): readonly string[] => {
    const changed: string[] = []
    const due = new Set(names)
    for (const node of inOrder(nodes, due)) {
      if (!due.has(node.name) || !settleOne(node)) continue
      changed.push(node.name)
      for (const name of node.requiredBy) due.add(name)
    }
    return changed
  }
  settle(groups.keys())
  return { all, settle }
}

function link(groups: ReadonlyMap<string, Group>): ReadonlyMap<string, GroupNode> {
  const nodes = new Map<string, GroupNode>()
  for (const [place, name] of orderGroups(groups).entries()) {
    const group = groups.get(name) as Group
    const requires = group.dependsOn ?? []
    nodes.set(name, { name, group, place, requires, requiredBy: [] })
    for (const one of new Set(requires)) nodes.get(one)?.requiredBy.push(name)
  }
  return nodes
}

/** Returns the named groups and all groups that require them. Each comes after the groups that it requires. */
function inOrder(nodes: ReadonlyMap<string, GroupNode>, names: Iterable<string>): readonly GroupNode[] {
  const reached = new Set<GroupNode>()
  const waiting = [...names]
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const node = nodes.get(name)
    if (!node || reached.has(node)) continue
    reached.add(node)
    waiting.push(...node.requiredBy)
  }
  return [...reached].toSorted((a, b) => a.place - b.place)
}

/** A known failure takes precedence over an unknown state. */
function stateOf(
  group: Group,
  asked: readonly { readonly result: ProbeResult | undefined }[],
  requires: readonly string[],
  states: ReadonlyMap<string, GroupState>,
): GroupState {
  const failed = asked.find(({ result }) => result?.available === false)?.result
  if (failed) return heldBack(failed, group.suggestion ?? failed.suggestion)
  const down = requires.map((name) => ({ name, state: states.get(name) })).filter(({ state }) => !state?.available)
  const blockedBy = down.find(({ state }) => !state?.unknown)
  if (blockedBy?.state) {
    const { reason, detail, suggestion } = blockedBy.state
    const why = `${blockedBy.name} is unavailable because ${reason ?? 'it is switched off'}`
    return heldBack({ reason: why, ...(detail === undefined ? {} : { detail }) }, suggestion ?? group.suggestion)
  }
  if (asked.some(({ result }) => result === undefined))
    return { ...heldBack({ reason: NOT_CHECKED }, undefined), unknown: true }
  if (down[0]) return { ...heldBack({ reason: `${down[0].name} has not been checked yet` }, undefined), unknown: true }
  return { available: true }
}

function heldBack(
  { reason, detail }: Pick<GroupState, 'reason' | 'detail'>,
  suggestion: string | undefined,
): GroupState {
  return {
    available: false,
    ...(reason === undefined ? {} : { reason }),
    ...(detail === undefined ? {} : { detail }),
    ...(suggestion === undefined ? {} : { suggestion }),
  }
}

/** Returns the former state if nothing changed, and keeps `since` if only the texts changed. */
function carryOn(former: GroupState | undefined, state: GroupState, clock: Clock): GroupState {
  const isAsBefore = former?.available === state.available && former.unknown === state.unknown
  const isSame =
    isAsBefore &&
    former.reason === state.reason &&
    former.detail === state.detail &&
    former.suggestion === state.suggestion
  if (isSame) return former
  const since = isAsBefore ? former.since : clock.wallMs()
  return Object.freeze({ ...state, ...(since === undefined ? {} : { since }) })
}
