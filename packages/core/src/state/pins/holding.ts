import type { Held } from '../../decide/layers/held.ts'
import { originalHash } from '../../tools/definition-hash.ts'
import { isListedForOne, isUnlisted } from '../../tools/own-tool.ts'
import type { Tool } from '../../tools/tool.ts'
import type { Toolset } from '../../tools/toolset.ts'
import { checkDefinition, type DefinitionFinding, FINDINGS } from './definition-check.ts'
import { findNearNames } from './near-names.ts'
import type { PinBook } from './pin-book.ts'
import type { DefinitionMode, NewToolMode, PinMode } from './pin-rules.ts'

export const PIN_STATUSES = ['pinned', 'changed', 'differs', 'suspended', 'new'] as const
/**
 * `new`: not pinned yet. `changed`: not the pinned definition. `differs`: on the lists of single users, and not among the
 * accepted definitions. `suspended`: any of them, and taken away.
 */
export type PinStatus = (typeof PIN_STATUSES)[number]

/** The tools that are held back now, by the pins and the checks. */
export interface Holding {
  statusOf(tool: Tool): PinStatus
  suspended(tool: Tool): Held | undefined
  quarantined(tool: Tool, snapshot: Toolset): Held | undefined
}

const SUGGESTION = 'A person has to accept its definition first.'
const CHANGED = 'its definition has changed'
const NEW = 'it is new'
const DIFFERS = 'nobody has accepted its definition'
const UNKNOWN = 'its definition cannot be compared with the accepted one now'

export function createHolding({
  mode,
  newTools,
  check,
  book,
  checks,
}: {
  readonly mode: PinMode
  readonly newTools: NewToolMode
  readonly check: DefinitionMode
  readonly book: PinBook
  readonly checks: DefinitionChecks
}): Holding {
  const statusOf = (tool: Tool): PinStatus => {
    if (book.pinOf(tool)) return 'pinned'
    const pin = book.get(tool.id)
    const isHeld = mode === 'suspend' || (pin === undefined && newTools === 'suspend')
    if (isHeld) return 'suspended'
    if (!pin || mode !== 'warn') return 'new'
    return isListedForOne(tool) ? 'differs' : 'changed'
  }
  const unpinned = ({ id }: Tool): Held =>
    book.isNew(id)
      ? { text: `${NEW}: nobody has accepted it`, message: NEW, suggestion: SUGGESTION, since: book.firstOf(id)?.since }
      : { text: book.problemOf(id), message: UNKNOWN }
  const isAccepted = (tool: Tool): boolean => {
    return book.pinOf(tool)?.by !== undefined
  }
  return {
    statusOf,
    suspended(tool) {
      // Nobody listed the item, so there is no definition to accept. Its templates are held back instead.
      if (isUnlisted(tool) || statusOf(tool) !== 'suspended') return undefined
      const pin = book.get(tool.id)
      const [what, is] = isListedForOne(tool) ? [DIFFERS, 'accepted'] : [CHANGED, 'pinned']
      return pin
        ? {
            text: `${what}: it is ${short(originalHash(tool))} and ${short(pin.hash)} is ${is}`,
            message: what,
            suggestion: SUGGESTION,
            since: pin.since,
          }
        : unpinned(tool)
    },
    quarantined(tool, snapshot) {
      if (check !== 'quarantine' || isAccepted(tool)) return undefined
      const found = checks.grave(tool, snapshot)
      return found.length === 0 ? undefined : { text: found.map(({ text }) => text).join('; ') }
    },
  }
}

function short(hash: string): string {
  return hash.slice(0, 12)
}

/** The findings about tools: in their definitions, and in names that resemble others. */
export interface DefinitionChecks {
  findings(tool: Tool, snapshot: Toolset): readonly DefinitionFinding[]
  /** Returns the findings for which quarantine hides the tool. */
  grave(tool: Tool, snapshot: Toolset): readonly DefinitionFinding[]
}

export function createDefinitionChecks(): DefinitionChecks {
  const names = new WeakMap<Toolset, ReadonlyMap<string, readonly DefinitionFinding[]>>()
  let latest: { readonly ids: string; readonly found: ReadonlyMap<string, readonly DefinitionFinding[]> } | undefined
  const namesIn = (snapshot: Toolset) => {
    let found = names.get(snapshot)
    if (!found) {
      // Cached by ids, because definitions change more often than names.
      const ids = snapshot.ids.join(' ')
      if (latest?.ids !== ids) latest = { ids, found: findNearNames(snapshot) }
      names.set(snapshot, (found = latest.found))
    }
    return found
  }
  const findings = (tool: Tool, snapshot: Toolset): readonly DefinitionFinding[] => {
    const own = checkDefinition(tool)
    // Skips other kinds: URIs and prompts of a server are similar by nature, and no model calls them by name.
    if (tool.kind !== 'tool') return own
    const beside = namesIn(snapshot).get(tool.id)
    return beside ? [...own, ...beside] : own
  }
  return {
    findings,
    grave: (tool, snapshot) => findings(tool, snapshot).filter((finding) => quarantines(tool, finding)),
  }
}

/** Of two names that look alike, plain ASCII is the original. Otherwise one server could hide another's tool. */
function quarantines({ name }: Tool, { code }: DefinitionFinding): boolean {
  return FINDINGS[code].quarantines && (code !== 'name_lookalike' || /[^ -~]/.test(name))
}
