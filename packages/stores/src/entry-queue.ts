import { type AuditEntry, holdEntry, type PolicyDocument, type SealOptions } from '@toolgate/core/audit'
import { sealedOf } from '@toolgate/core/internal'
import type { AuditFile } from './audit-file.ts'
import { ownEntry } from './own-records.ts'

/** The maximum number of characters of waiting sealed inputs. Further writes are refused. */
const MAX_BOXES = 64 * 1024 * 1024

/** Entries that wait to be stored, in order. */
export class EntryQueue {
  readonly #file: Pick<AuditFile, 'append'>
  readonly #nowMs: () => number
  readonly #options: SealOptions
  /** The audit's own entries, which are never dropped. */
  #own: AuditEntry[] = []
  #entries: AuditEntry[] = []
  /** The length of the waiting sealed inputs, in characters. */
  #boxes = 0
  #droppedCount = 0
  /** The number of dropped entries that no stored record mentions yet. */
  #unrecordedCount = 0
  readonly #keptPolicies = new Set<string>()
  #latestPolicy: PolicyDocument | undefined

  constructor(file: Pick<AuditFile, 'append'>, nowMs: () => number, options: SealOptions) {
    this.#file = file
    this.#nowMs = nowMs
    this.#options = options
  }

  /** The number of entries that wait to be stored, not counting the audit's own. */
  get count(): number {
    return this.#entries.length
  }

  /** Returns whether `max` entries wait, or their sealed inputs are too long. */
  isFull(max: number): boolean {
    return this.#entries.length >= max || this.#boxes >= MAX_BOXES
  }

  /** The number of refused and dropped entries. */
  get droppedCount(): number {
    return this.#droppedCount
  }

  /** Whether there is anything to store, such as a record of dropped entries. */
  get hasAny(): boolean {
    return this.#entries.length > 0 || this.#own.length > 0 || this.#unrecordedCount > 0
  }

  add(entry: AuditEntry): void {
    if (entry.in_force !== undefined && entry.in_force !== this.#latestPolicy) this.#keepPolicy(entry.in_force)
    this.#entries.push(entry)
    this.#boxes += sealedOf(entry, this.#options)?.box?.length ?? 0
  }

  /** Adds one of the audit's own entries. */
  addOwn(entry: AuditEntry): void {
    this.#own.push(entry)
  }

  /** Stores all entries and returns their number, or throws and keeps all. */
  store(): number {
    const all = this.#own.length > 0 || this.#unrecordedCount > 0 ? this.#withOwn() : this.#entries
    try {
      if (all.length > 0) this.#file.append(all)
    } catch (error) {
      // While the disk fails, waiting entries do not keep their inputs.
      this.#entries = this.#entries.map((entry) => holdEntry(entry, this.#options))
      throw error
    }
    this.#own = []
    this.#entries = []
    this.#boxes = 0
    this.#unrecordedCount = 0
    return all.length
  }

  /** Drops all entries except the audit's own and those that `isKept` keeps. Returns the dropped entries. */
  drop(isKept: (entry: AuditEntry) => boolean = () => false): readonly AuditEntry[] {
    const dropped = this.#entries.filter((entry) => !isKept(entry))
    this.#entries = this.#entries.filter(isKept).map((entry) => holdEntry(entry, this.#options))
    this.#boxes = this.#entries.reduce((sum, entry) => sum + (sealedOf(entry, this.#options)?.box?.length ?? 0), 0)
    this.#droppedCount += dropped.length
    this.#unrecordedCount += dropped.length
    return dropped
  }

  /** Counts a refused entry. */
  refuse(): void {
    this.#droppedCount++
    this.#unrecordedCount++
  }

  /** Stores the text of a policy once, before the first record that this policy decided. */
  #keepPolicy(policy: PolicyDocument): void {
    this.#latestPolicy = policy
    const { hash, text } = policy
    if (this.#keptPolicies.has(hash)) return
    this.#keptPolicies.add(hash)
    this.addOwn(ownEntry('policy_recorded', this.#nowMs(), { policy_hash: hash, policy: text }))
  }

  #withOwn(): readonly AuditEntry[] {
    const count = this.#unrecordedCount
    const detail = count === 1 ? '1 record could not be written' : `${count} records could not be written`
    const dropped = count === 0 ? [] : [ownEntry('audit_dropped', this.#nowMs(), { detail })]
    return [...this.#own, ...dropped, ...this.#entries]
  }
}
