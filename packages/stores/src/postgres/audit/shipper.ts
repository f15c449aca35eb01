import { setTimeout as delay } from 'node:timers/promises'
import { type ChainEnd, type RecordTree } from '@toolgate/core/audit'
import { endsWithin, messageOf } from '@toolgate/values'
import { LogTail } from '../../jsonl/tail.ts'
import type { AuditProblem } from './audit-problem.ts'
import type { ChainStore, SealedGroup } from './chain-store.ts'
import { type StoredInputBoxes, openBoxes } from '../../input-boxes.ts'
import { toGroup, withBoxes } from './sealed-group.ts'

interface ShipperParts {
  readonly store: ChainStore
  /** The path of the audit on this disk. */
  readonly path: string
  /** The newest record in the database, and the tree up to it. */
  readonly end: ChainEnd
  readonly tree: RecordTree
  /** Called when the database has the records up to a number. */
  readonly onShipped: (seq: number) => void
  /** Called when {@link Shipper.problem} may have changed. */
  readonly onChange: () => void
}

/** The longest time that a record may be on this disk only. Then calls are refused. */
const MOST_MS = 1000
const AGAIN_MS = 25
const RETRY_MS = 250
/** The number of records after which the tree is stored in the database, so that another process can continue it. */
const TREE_EVERY = 10_000
/** The maximum number of moments that are told apart while the database is unreachable. The oldest one counts. */
const MAX_MARKS = 100

/** The moment since which records up to a number are on this disk. */
interface Mark {
  seq: number
  readonly sinceMs: number
}

/**
 * Ships the records of an audit on this disk to a chain of the shared audit, in groups and in order.
 *
 * A group is sent until the database has it. Sending it again changes nothing.
 */
export class Shipper {
  readonly #parts: ShipperParts
  readonly #tail: LogTail
  /** The sealed inputs. They are read like the records, even after the writer has closed them. */
  #boxes: StoredInputBoxes | undefined
  /** The newest record in the database. */
  #end: ChainEnd
  /** The newest record on this disk. */
  #onDisk: number
  #treeAt: number
  /** The marks of records that are not in the database, oldest first. */
  #marks: Mark[] = []
  readonly #waiting = new Set<{ readonly seq: number; readonly resolve: () => void }>()
  #alarm: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined
  #failure: unknown
  #fork: string | undefined
  #isStopped = false

  constructor(parts: ShipperParts) {
    this.#parts = parts
    this.#end = parts.end
    this.#onDisk = parts.end.seq
    this.#treeAt = parts.tree.size
    this.#tail = new LogTail(parts.path, parts.end.seq)
  }

  /** The number of records that only this disk has. */
  get unshipped(): number {
    return this.#onDisk - this.#end.seq
  }

  /** The age of the oldest record that the database lacks, in milliseconds, or 0 for none. */
  get ageMs(): number {
    const [oldest] = this.#marks
    return oldest === undefined ? 0 : performance.now() - oldest.sinceMs
  }

  /** Why calls are refused now. */
  get problem(): AuditProblem | undefined {
    if (this.#fork !== undefined) return { code: 'forked', message: this.#fork }
    const { ageMs } = this
    if (ageMs <= MOST_MS) return undefined
    const why = this.#failure === undefined ? 'it has not answered' : messageOf(this.#failure)
    const what = `${this.unshipped} records of the last ${Math.round(ageMs)} ms have not reached the database`
    return { code: 'unshipped', message: `${what}: ${why}` }
  }

  /** Reports that the records up to a number are on this disk. */
  add(seq: number): void {
    if (seq <= this.#onDisk) return
    this.#onDisk = seq
    const newest = this.#marks.at(-1)
    if (newest !== undefined && this.#marks.length >= MAX_MARKS) newest.seq = seq
    else this.#marks.push({ seq, sinceMs: performance.now() })
    this.#alarm ??= setTimeout(() => this.#look(), MOST_MS).unref()
    this.#working ??= this.#work()
  }

  /** Waits for the database to get all current records. Returns whether it does within a time. */
  async drain(withinMs: number): Promise<boolean> {
    const seq = this.#onDisk
    if (this.#end.seq >= seq) return true
    if (this.#fork !== undefined) return false
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add({ seq, resolve })
    await endsWithin(promise, withinMs)
    return this.#end.seq >= seq
  }

  /** Stops shipping. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#alarm)
    await this.#working
    this.#tail.close()
    this.#boxes?.close()
  }

  async #work(): Promise<void> {
    try {
      while (this.#end.seq < this.#onDisk && !this.#isStopped) {
        const texts = this.#tail.read(this.#onDisk)
        const group = withBoxes(toGroup(texts, this.#end, this.#parts.tree), (seq) => this.#boxAt(seq))
        await this.#deliver(this.#withTree(group))
      }
    } catch (error) {
      // The disk's content differs from what was written.
      this.#fork = messageOf(error)
      this.#changed()
    }
    this.#working = undefined
  }

  #boxAt(seq: number): string | undefined {
    this.#boxes ??= openBoxes(this.#parts.path, { mayWrite: false, make: false })
    return this.#boxes?.get(seq)
  }

  #withTree(group: SealedGroup): SealedGroup {
    const { tree } = this.#parts
    const isDue = tree.size - this.#treeAt >= TREE_EVERY
    if (isDue) this.#treeAt = tree.size
    return { ...group, onDisk: this.#onDisk, ...(isDue && { tree: tree.state }) }
  }

  async #deliver(group: SealedGroup): Promise<void> {
    for (let waitMs = AGAIN_MS; !this.#isStopped; waitMs = RETRY_MS) {
      try {
        const other = await this.#parts.store.append(group)
        if (other !== undefined)
          throw new ForkError(`record ${other} of this chain has another content in the database, or is missing there`)
        return this.#shipped(group.end)
      } catch (error) {
        if (error instanceof ForkError) throw error
        this.#failure = error
        await delay(waitMs)
      }
    }
  }

  #shipped(end: ChainEnd): void {
    this.#end = end
    this.#failure = undefined
    while (this.#marks[0] !== undefined && this.#marks[0].seq <= end.seq) this.#marks.shift()
    this.#parts.onShipped(end.seq)
    this.#changed()
  }

  #changed(): void {
    for (const waiter of this.#waiting) {
      if (waiter.seq > this.#end.seq && this.#fork === undefined) continue
      waiter.resolve()
      this.#waiting.delete(waiter)
    }
    this.#parts.onChange()
  }

  /** Detects that a record has become too old, even while nothing is written. */
  #look(): void {
    this.#alarm = undefined
    this.#parts.onChange()
    if (this.#marks.length === 0 || this.#isStopped) return
    const leftMs = MOST_MS - this.ageMs
    this.#alarm = setTimeout(() => this.#look(), leftMs < 0 ? RETRY_MS : Math.ceil(leftMs) + 1).unref()
  }
}

class ForkError extends Error {}
