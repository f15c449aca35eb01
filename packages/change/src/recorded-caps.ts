import { type CapInput, type CapUse, createSlots, parseCaps, type ParsedCap } from '@toolgate/core/call'
import type { Caller, Tool } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'
import { parseAliases, toGroupMap } from '@toolgate/core/policy'
import { parseGroups } from '@toolgate/core/groups'
import { canonicalize } from '@toolgate/values/json'
import type { RecordedSince } from './recorded-runs.ts'
import type { TrialRules } from './trial.ts'

/** The longest call in milliseconds. For this long after the first record, running calls may be unknown. */
const LONGEST_CALL_MS = 600_000
const MAX_CALLS = 100_000

/** Counts recorded calls that ran at once, for the caps that only one of the two sets of rules has. */
export class RecordedCaps {
  readonly #capsOf: (tool: Tool, caller: Caller) => readonly CapUse[]
  readonly #running = new Map<string, number>()
  readonly #calls = new Map<string, readonly CapUse[]>()
  /** Whether a cap was removed, so that a call which it refused might run. */
  readonly isLoosened: boolean
  /** Whether concurrent calls have to be counted. */
  readonly isRead: boolean

  /** @throws {ConfigError} for invalid caps */
  constructor(before: CappedRules, after: CappedRules) {
    const [old, now] = [capsOf(before), capsOf(after)]
    const further = without(now, old)
    const slots = createSlots(further)
    this.isRead = further.length > 0
    this.#capsOf = (tool, caller) => slots.capsOf(tool, caller)
    this.isLoosened = without(old, now).length > 0
  }

  /** Returns the new caps that running calls had already filled. The call would have waited for an unknown time. */
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

/** Caps, and the groups and aliases that their selectors use. */
type CappedRules = Pick<TrialRules, 'groups' | 'aliases'> & { readonly concurrency?: CapInput | undefined }

type NamedCap = ParsedCap & { readonly text: string }

/** Caps with equal text are equal if the groups and aliases are, too. */
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
