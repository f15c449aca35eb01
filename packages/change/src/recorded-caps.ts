import { type CapInput, type CapUse, createSlots, parseCaps, type ParsedCap } from '@toolgate/core/call'
import type { Caller, Tool } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'
import { parseAliases, toGroupMap } from '@toolgate/core/policy'
import { parseGroups } from '@toolgate/core/groups'
import { canonicalize } from '@toolgate/values/json'
import type { RecordedSince } from './recorded-runs.ts'
import type { TrialRules } from './trial.ts'

/** What ran before the first record is unknown for this long. */
const LONGEST_CALL_MS = 600_000
const MAX_CALLS = 100_000

/** How many recorded calls ran at once, as far as caps that only one of two rules has ask. */
export class RecordedCaps {
  readonly #capsOf: (tool: Tool, caller: Caller) => readonly CapUse[]
  readonly #running = new Map<string, number>()
  readonly #calls = new Map<string, readonly CapUse[]>()
  /** Whether a cap is gone, so that a call that was refused for one might run. */
  readonly isLoosened: boolean
  /** Whether it counts what runs at once. */
  readonly isRead: boolean

  /** @throws {ConfigError} for caps that no gate takes */
  constructor(before: CappedRules, after: CappedRules) {
    const [old, now] = [capsOf(before), capsOf(after)]
    const further = without(now, old)
    const slots = createSlots(further)
    this.isRead = further.length > 0
    this.#capsOf = (tool, caller) => slots.capsOf(tool, caller)
    this.isLoosened = without(old, now).length > 0
  }

  /** Returns the new caps that the calls which ran already had filled: the call would have waited, and nobody knows for how long. */
  full(tool: Tool, caller: Caller, nowMs: number, since: RecordedSince): readonly string[] {
    const isWhole = since.isWhole || nowMs >= since.ms + LONGEST_CALL_MS
    return this.#capsOf(tool, caller).flatMap(({ key, cap }) =>
      isWhole && (this.#running.get(key) ?? 0) < cap.max ? [] : [`concurrency ${cap.selector.text}:${cap.max}`],
    )
  }

  begin(record: AuditRecord, tool: Tool, caller: Caller): void {
    const uses = this.#capsOf(tool, caller)
    if (uses.length === 0 || this.#calls.size >= MAX_CALLS) return
    this.end(record)
    this.#calls.set(keyOf(record), uses)
    for (const { key } of uses) this.#running.set(key, (this.#running.get(key) ?? 0) + 1)
  }

  end(record: AuditRecord): void {
    const uses = this.#calls.get(keyOf(record))
    if (!uses) return
    this.#calls.delete(keyOf(record))
    for (const { key } of uses) this.#running.set(key, (this.#running.get(key) ?? 1) - 1)
  }
}

/** Caps, and what their selectors name. */
type CappedRules = Pick<TrialRules, 'groups' | 'aliases'> & { readonly concurrency?: CapInput | undefined }

type NamedCap = ParsedCap & { readonly text: string }

/** Caps of equal text are one cap, where the groups and aliases are the same, too. */
function capsOf({ concurrency, groups, aliases }: CappedRules): readonly NamedCap[] {
  const { selectors } = parseGroups(groups, parseAliases(aliases))
  const names = canonicalize([...toGroupMap(groups ?? {})].map(([name, { tools }]) => [name, [...tools]]))
  return parseCaps(concurrency, selectors).map((cap) => {
    const { selector, ...rest } = cap
    return { ...cap, text: JSON.stringify([selector.text, rest, names, aliases ?? null]) }
  })
}

function without(caps: readonly NamedCap[], others: readonly NamedCap[]): readonly NamedCap[] {
  const known = new Set(others.map(({ text }) => text))
  return caps.filter(({ text }) => !known.has(text))
}

function keyOf({ run_id: run, session_id: session, user_id: user, tool_call_id: id }: AuditRecord): string {
  return JSON.stringify([run, session, user, id])
}
