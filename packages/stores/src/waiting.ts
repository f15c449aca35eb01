import { type AuditEntry, holdEntry, type PolicyDocument, type SealOptions } from '@toolgate/core/audit'
import type { AuditFile } from './audit-file.ts'
import { ownEntry } from './own-records.ts'

/** Entries that wait for the file, in the order they came. */
export interface Waiting {
  readonly count: number
  /** Entries that were refused or given up. */
  readonly droppedCount: number
  /** Whether there is something to store, be it only that entries were dropped. */
  readonly hasAny: boolean
  add(entry: AuditEntry): void
  /** Adds an entry of the audit itself, which is not dropped. */
  addOwn(entry: AuditEntry): void
  /** Stores all of them and gives their number, or throws and keeps all of them. */
  store(): number
  /** Gives up on all of them but the audit's own. Gives them. */
  drop(): readonly AuditEntry[]
  /** Counts one that was not taken. */
  refuse(): void
}

export function createWaiting(file: AuditFile, nowMs: () => number, options: SealOptions): Waiting {
  let own: AuditEntry[] = []
  let entries: AuditEntry[] = []
  let droppedCount = 0
  const keptPolicies = new Set<string>()
  let latest: PolicyDocument | undefined
  /** Of those, how many the file does not tell of yet. */
  let untold = 0

  /** What a policy says is stored once, before the first record that it decided. */
  function keepPolicy(policy: PolicyDocument): void {
    latest = policy
    const { hash, text } = policy
    if (keptPolicies.has(hash)) return
    keptPolicies.add(hash)
    own.push(ownEntry('policy_recorded', nowMs(), { policy_hash: hash, policy: text }))
  }

  function group(): readonly AuditEntry[] {
    if (untold === 0 && own.length === 0) return entries
    const dropped = untold === 0 ? [] : [ownEntry('audit_dropped', nowMs(), { detail: droppedText(untold) })]
    return [...own, ...dropped, ...entries]
  }

  return {
    get count() {
      return entries.length
    },
    get droppedCount() {
      return droppedCount
    },
    get hasAny() {
      return entries.length > 0 || own.length > 0 || untold > 0
    },
    add(entry) {
      if (entry.in_force !== undefined && entry.in_force !== latest) keepPolicy(entry.in_force)
      entries.push(entry)
    },
    addOwn(entry) {
      own.push(entry)
    },
    store() {
      const all = group()
      try {
        if (all.length > 0) file.append(all)
      } catch (error) {
        // Those that a failing disk makes wait hold no inputs.
        entries = entries.map((entry) => holdEntry(entry, options))
        throw error
      }
      own = []
      entries = []
      untold = 0
      return all.length
    },
    drop() {
      const dropped = entries
      entries = []
      droppedCount += dropped.length
      untold += dropped.length
      return dropped
    },
    refuse() {
      droppedCount++
      untold++
    },
  }
}

function droppedText(count: number): string {
  return count === 1 ? '1 record could not be written' : `${count} records could not be written`
}
