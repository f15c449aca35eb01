import type { Gate, Tool, View } from '@toolgate/core'
import { MAX_NAME_LENGTH, type WireNames } from '@toolgate/expose'
import { sha256Hex } from '@toolgate/values'
import { definitionHash } from '@toolgate/core/pins'
import type { Toolset } from '@toolgate/core/toolset'
import { type ListedTool, toListedTool } from './listed-tool.ts'
import {
  isByRequest,
  isMetaTool,
  isSearchWanted,
  lockedGroupsFor,
  type SearchOffer,
  toRequestDescription,
  toSearchDescription,
} from './meta-tools.ts'
import { createListedNames, type FindRules, type ListedNames, type NameClash, type NamedKind } from './names.ts'

/** The tools of a view that `tools/list` shows. */
export interface ToolList {
  /** Sorted by id. */
  readonly tools: readonly Tool[]
  /** Equal lists have equal keys. */
  readonly key: string
}

const ALWAYS_PREFIXED = { prefix: 'always', max: MAX_NAME_LENGTH, renamed: new Map<string, string>() } as const
const alwaysPrefixed: FindRules = () => ALWAYS_PREFIXED

type ListedGate = Pick<Gate, 'catalog' | 'locks' | 'membersOf'>

/**
 * The lists of tools that callers get.
 *
 * A caller without a session cannot keep a group open, so their list leaves out the tools of every locked group. They
 * find and call those tools through the search tools. This affects only what is listed, never what may be called.
 */
export class ToolLists {
  readonly #gate: ListedGate
  readonly #search: SearchOffer
  readonly #lists = new WeakMap<View, ToolList>()
  readonly #rulesOf: FindRules
  readonly #names = new WeakMap<Toolset, ListedNames>()
  readonly #locked = new WeakMap<Toolset, ReadonlySet<string>>()
  /** Whether every list has exactly the tools of its view. */
  readonly #isPlain: boolean

  constructor(gate: ListedGate, search: SearchOffer = { offer: 'auto' }, rulesOf: FindRules = alwaysPrefixed) {
    this.#gate = gate
    this.#rulesOf = rulesOf
    this.#search = search
    this.#isPlain = !isSearchWanted(search, gate.locks.groups.size)
  }

  of(view: View): ToolList {
    // Views of callers who see the same tools share one fingerprint.
    if (this.#isPlain) return { tools: view.tools, key: view.fingerprint }
    let list = this.#lists.get(view)
    if (!list) this.#lists.set(view, (list = this.#make(view)))
    return list
  }

  /** Returns the list as it is sent, without tools that MCP cannot call. */
  listed(view: View): readonly ListedTool[] {
    const names = this.names(view)
    return this.of(view).tools.flatMap((tool) => {
      const name = names.toName(tool.id)
      return (name !== undefined && listedTool(tool, name)) || []
    })
  }

  /**
   * Returns the wire names of all tools in a view. Hidden ones are included, so that the audit can name the tool of a
   * refused call.
   */
  names(view?: View): WireNames {
    const names = this.#namesOf('tool', view)
    return names.fixed ?? names.of(view)
  }

  /** Returns the wire names of all prompts in a view, by the same rules. */
  promptNames(view?: View): WireNames {
    return this.#namesOf('prompt', view).of(view)
  }

  /** The names that several tools or several prompts compete for, against the rules of their servers. */
  get clashes(): readonly NameClash[] {
    return [...this.#namesOf('tool').clashes, ...this.#namesOf('prompt').clashes]
  }

  /** The names in the shared catalog, or in the catalog of a view's caller. */
  #namesOf(wanted: NamedKind, view?: View): ListedNames {
    const { catalog } = this.#gate
    const { snapshot, items } = view
      ? catalog.of(view.caller)
      : { snapshot: catalog.snapshot(), items: catalog.items() }
    const all = wanted === 'tool' ? snapshot : items
    let names = this.#names.get(all)
    if (!names) {
      const named = all.tools.filter(({ kind }) => kind === wanted)
      this.#names.set(all, (names = createListedNames(named, (server) => this.#rulesOf(server, wanted))))
    }
    return names
  }

  #make(view: View): ToolList {
    const { session } = view.caller
    const listed = session === undefined ? this.#withoutLocked(view) : view.tools
    const locked = lockedGroupsFor(this.#gate, view)
    const isSearchOffered = this.#offersSearch(locked.length, listed)
    const tools = listed.flatMap((tool): readonly Tool[] => {
      if (!isMetaTool(tool)) return [tool]
      switch (tool.id) {
        case 'request_tools':
          return session !== undefined && locked.some(isByRequest)
            ? [{ ...tool, description: toRequestDescription(locked) }]
            : []
        case 'search_tools':
          return isSearchOffered
            ? [{ ...tool, description: toSearchDescription(tool.description, locked, session) }]
            : []
        default:
          return isSearchOffered ? [tool] : []
      }
    })
    return { tools, key: sha256Hex(tools.map((tool) => `${definitionHash(tool)}\n${tool.description}`).join('\n')) }
  }

  #withoutLocked({ tools, caller }: View): readonly Tool[] {
    const gate = this.#gate
    const { snapshot } = gate.catalog.of(caller)
    let ids = this.#locked.get(snapshot)
    if (!ids) {
      ids = new Set([...gate.locks.groups.keys()].flatMap((name) => gate.membersOf(name, caller)))
      this.#locked.set(snapshot, ids)
    }
    return tools.filter(({ id }) => !ids.has(id))
  }

  #offersSearch(locked: number, listed: readonly Tool[]): boolean {
    const { offer, above = Infinity } = this.#search
    if (offer !== 'auto') return offer === 'always'
    return locked > 0 || listed.filter((tool) => !isMetaTool(tool)).length > above
  }
}

const listedTools = new WeakMap<Tool, { readonly name: string; readonly listed: ListedTool | undefined }>()

function listedTool(tool: Tool, name: string): ListedTool | undefined {
  let known = listedTools.get(tool)
  if (known?.name !== name) listedTools.set(tool, (known = { name, listed: toListedTool(tool, name) }))
  return known.listed
}
