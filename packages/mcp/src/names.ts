import type { Tool, View } from '@toolgate/core'
import { createWireNames, toWireName, type WireNames } from '@toolgate/expose'

/** When the name of a server precedes the names of its tools: `files__read_file`. */
export type PrefixMode = 'always' | 'when-needed' | 'never'

/** How the items of one server are named for clients. */
export interface NameRules {
  readonly prefix: PrefixMode
  /** The maximum length in characters. A longer name is cut and ends in a hash. */
  readonly max: number
  /** Names that the operator chose, by the server's own names. */
  readonly renamed: ReadonlyMap<string, string>
}

/** The kinds of items that clients know by name. */
export type NamedKind = 'tool' | 'prompt'

/**
 * Returns the naming rules of a server for a kind of items. An item without a namespace is Toolgate's own and keeps its
 * name.
 */
export type FindRules = (namespace: string, kind: NamedKind) => NameRules

/** Items that compete for one name. */
export interface NameClash {
  readonly name: string
  /** Sorted. */
  readonly ids: readonly string[]
  /** Whether all of them get a prefix. Otherwise they are left out, since their prefix is the same too. */
  readonly isPrefixed: boolean
}

/** The names of all items of a kind, for every view. */
export interface ListedNames {
  /**
   * Returns the names in a view. No two items share a name, and hidden items do not affect the names of visible ones.
   * Without a view, every contested item has its long name.
   */
  of(view?: Pick<View, 'has'>): WireNames
  /** The names in every view. Absent if they depend on what a view shows. */
  readonly fixed: WireNames | undefined
  /** Clashes that the rules do not intend. */
  readonly clashes: readonly NameClash[]
}

type WireNamed = Pick<Tool, 'id' | 'namespace' | 'name'>

/** An item that may have a short name. */
interface Rival {
  readonly item: WireNamed
  readonly long: string
  readonly isNever: boolean
}

/**
 * Names items by the rules of their servers.
 *
 * `toWireName` returns the long name. A short name has no prefix and no `__`, so it never equals the long name of
 * another item. If several visible items compete for a short name, the item whose server says `never` gets it. If no
 * server or several servers say `never`, all of these items have long names.
 */
export function createListedNames(items: Iterable<WireNamed>, rulesOf: (namespace: string) => NameRules): ListedNames {
  const names = new Map<WireNamed, string>()
  const wanting = new Map<string, Rival[]>()
  for (const item of items) {
    if (item.namespace === undefined) {
      names.set(item, toWireName(item))
      continue
    }
    const { prefix, max, renamed } = rulesOf(item.namespace)
    const shown = { ...item, name: renamed.get(item.name) ?? item.name }
    const long = toWireName(shown, max)
    names.set(item, long)
    if (prefix === 'always') continue
    const short = toShortName(shown, max)
    const rivals = wanting.get(short) ?? []
    rivals.push({ item, long, isNever: prefix === 'never' })
    wanting.set(short, rivals)
  }
  const taken = new Set([...names].flatMap(([{ namespace }, name]) => (namespace === undefined ? [name] : [])))
  const contests = new Map<string, readonly Rival[]>()
  const clashes: NameClash[] = []
  for (const [short, rivals] of wanting) {
    const [only] = rivals
    const isTaken = taken.has(short)
    if (only && rivals.length === 1 && !isTaken) names.set(only.item, short)
    else if (!isTaken) contests.set(short, rivals)
    const stubborn = rivals.filter(({ isNever }) => isNever)
    if (stubborn.length > (isTaken ? 0 : 1))
      clashes.push(
        toClash(
          short,
          stubborn.map(({ item }) => item.id),
          true,
        ),
      )
  }
  const fixed = createWireNames(names.keys(), (item) => names.get(item) as string)
  for (const { name, ids } of fixed.collisions) clashes.push(toClash(name, ids, false))
  const kept = new WeakMap<object, WireNames>()
  const of = (view?: Pick<View, 'has'>): WireNames => {
    if (!view || contests.size === 0) return fixed
    let known = kept.get(view)
    if (!known) kept.set(view, (known = contested(fixed, contests, view)))
    return known
  }
  return { of, fixed: contests.size === 0 ? fixed : undefined, clashes }
}

function toClash(name: string, ids: readonly string[], isPrefixed: boolean): NameClash {
  return { name, ids: ids.toSorted(), isPrefixed }
}

/** Returns the fixed names, but gives the short name in each contest to the winner among the visible items. */
function contested(
  fixed: WireNames,
  contests: ReadonlyMap<string, readonly Rival[]>,
  view: Pick<View, 'has'>,
): WireNames {
  const won = new Map<string, string>()
  const shorts = new Map<string, string>()
  for (const [short, rivals] of contests) {
    const visible = rivals.filter(({ item }) => view.has(item.id))
    const first = visible.filter(({ isNever }) => isNever)
    const [winner, second] = first.length > 0 ? first : visible
    if (!winner || second) continue
    won.set(short, winner.item.id)
    shorts.set(winner.item.id, short)
  }
  return {
    collisions: fixed.collisions,
    toName: (id) => shorts.get(id) ?? fixed.toName(id),
    toId(name) {
      const id = won.get(name) ?? fixed.toId(name)
      return id !== undefined && (shorts.get(id) ?? name) === name ? id : undefined
    },
  }
}

const SHORT = /^(?!.*__)[A-Za-z0-9_-]+$/

/** Returns the name of an item without its namespace. A name that is not valid on the wire gets a hash. */
function toShortName({ id, name }: WireNamed, max: number): string {
  return name.length <= max && SHORT.test(name) ? name : toWireName({ id, namespace: undefined, name }, max)
}
