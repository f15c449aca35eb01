import { setTimeout as delay } from 'node:timers/promises'
import { type ChainEnd, type RecordTree } from '@toolgate/core/audit'
import { endsWithin, messageOf } from '@toolgate/values'
import { LogTail } from '../../jsonl/tail.ts'
import type { AuditProblem } from './audit-problem.ts'
import type { ChainStore, SealedGroup } from './chain-store.ts'
import { type InputBoxes, openBoxes } from '../../input-boxes.ts'
import { toGroup, withBoxes } from './sealed-group.ts'

interface ShipperParts {
  readonly store: ChainStore
  /** The audit on this disk. */
  readonly path: string
  /** The newest record in the database, and the tree over all of them. */
  readonly end: ChainEnd
  readonly tree: RecordTree
  /** Called when the database has the records up to a number. */
  readonly onShipped: (seq: number) => void
  /** Called when {@link Shipper.problem} may have begun or ended. */
  readonly onChange: () => void
}

/** Records on this disk may be so old before the database has them. Then calls are refused. */
const MOST_MS = 1000
const AGAIN_MS = 25
const RETRY_MS = 250
/** The tree is kept in the database from time to time, so that another process goes on with it. */
const TREE_EVERY = 10_000
/** While the database is gone, more moments are not told apart: the oldest of them counts. */
const MAX_MARKS = 100

/** A moment since which records up to a number are on this disk. */
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
  /** Read like the records: also when their writer has closed them. */
  #boxes: InputBoxes | undefined
  /** The newest record in the database. */
  #end: ChainEnd
  /** The newest record on this disk. */
  #onDisk: number
  #treeAt: number
  /** Of the records that are not in the database, oldest first. */
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

  /** How many records only this disk has. */
  get unshipped(): number {
    return this.#onDisk - this.#end.seq
  }

  /** For how long this disk has had the oldest record that the database does not have; 0 for none. */
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

  /** Says that the records up to a number are on this disk. */
  add(seq: number): void {
    if (seq <= this.#onDisk) return
    this.#onDisk = seq
    const newest = this.#marks.at(-1)
    if (newest !== undefined && this.#marks.length >= MAX_MARKS) newest.seq = seq
    else this.#marks.push({ seq, sinceMs: performance.now() })
    this.#alarm ??= setTimeout(() => this.#look(), MOST_MS).unref()
    this.#working ??= this.#work()
  }

  /** Returns whether the database gets all records of now within a time. */
  async drain(withinMs: number): Promise<boolean> {
    const seq = this.#onDisk
    if (this.#end.seq >= seq) return true
    if (this.#fork !== undefined) return false
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add({ seq, resolve })
    await endsWithin(promise, withinMs)
    return this.#end.seq >= seq
  }

  /** Ships no more. */
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
      // What is on the disk is not what was written there.
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

  /** Notices that a record has become too old, also while nobody writes. */
  #look(): void {
    this.#alarm = undefined
    this.#parts.onChange()
    if (this.#marks.length === 0 || this.#isStopped) return
    const leftMs = MOST_MS - this.ageMs
    this.#alarm = setTimeout(() => this.#look(), leftMs < 0 ? RETRY_MS : Math.ceil(leftMs) + 1).unref()
  }
}

class ForkError extends Error {}
