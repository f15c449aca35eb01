import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '@toolgate/core'
import { type AuditRecord, type ChainEnd, createSealer, type RecordTree, type SealOptions } from '@toolgate/core/audit'
import { messageOf } from '@toolgate/values'
import { lastSeqAt, LogTail } from '../../jsonl/tail.ts'
import { lockExclusively } from '../../locks.ts'
import { abandonedEntry } from '../../own-records.ts'
import type { PostgresDatabase } from '../database.ts'
import { findChain, type KeptChain, type SealedGroup } from './chain-store.ts'
import { chainFile, removeChainFiles } from './disk-sink.ts'
import { type StoredInputBoxes, openBoxes } from '../../input-boxes.ts'
import { toGroup, withBoxes } from './sealed-group.ts'

/** A folder with a replica's unshipped records. One process holds it. */
interface DiskFolder {
  readonly path: string
  release(): void
}

/** Takes a folder. @throws {ConfigError} for an unusable folder, and for one that another process holds */
export function takeFolder(path: string): DiskFolder {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    return { path, release: lockExclusively(join(path, 'replica')) }
  } catch (cause) {
    throw new ConfigError(
      'disk',
      `${path} cannot be used: ${messageOf(cause)}. Each replica needs a folder of its own`,
      {
        cause,
      },
    )
  }
}

interface LeftoverDeps {
  readonly db: PostgresDatabase
  readonly folder: string
  readonly sealing: SealOptions
  readonly nowMs: () => number
  /** Returns the calls that a chain has left open. */
  readonly openCalls: (chain: number) => Promise<readonly AuditRecord[]>
}

/** The records that an earlier start of a replica left on this disk. */
interface Leftover {
  readonly path: string
  readonly chain: KeptChain
}

/**
 * Ships the records that earlier starts of a replica left in its folder, under their own chains. Returns a function
 * that ends their open calls, for which it reads all their records.
 *
 * @throws {ConfigError} for records that cannot be shipped
 */
export async function shipLeftovers(deps: LeftoverDeps): Promise<() => Promise<void>> {
  const names = readdirSync(deps.folder).flatMap((name) => /^(.+?)\.jsonl/.exec(name)?.[1] ?? [])
  const left: Leftover[] = []
  for (const incarnation of new Set(names)) {
    const found = await shipLeftover(incarnation, deps)
    if (found !== undefined) left.push(found)
  }
  return async () => {
    for (const one of left) await endLeftover(one, deps)
  }
}

async function shipLeftover(incarnation: string, { db, folder }: LeftoverDeps): Promise<Leftover | undefined> {
  const path = chainFile(folder, incarnation)
  const chain = await findChain(db, incarnation)
  const last = lastSeqAt(path)
  if (chain === undefined && last > 0)
    throw unusable(path, 'its records are of a chain that this database does not have')
  if (chain === undefined) {
    removeChainFiles(path)
    return undefined
  }
  if (last <= chain.end.seq) return { path, chain }
  const end = await ship(path, chain, last)
  return { path, chain: { ...chain, hasLeft: false, end } }
}

/** Ships the records up to a number. Returns the end of the chain. */
async function ship(path: string, { store, end, tree }: KeptChain, last: number): Promise<ChainEnd> {
  const tail = new LogTail(path, end.seq)
  const boxes = openBoxes(path, { mayWrite: true, make: false })
  try {
    for (let after = end; ;) {
      const group = nextGroup(tail, { path, after, last, tree, boxes })
      if (group === undefined) return after
      const other = await store.append({ ...group, onDisk: last })
      if (other !== undefined) throw unusable(path, `its record ${other} is not the one that the database has`)
      after = group.end
    }
  } finally {
    boxes?.close()
    tail.close()
  }
}

interface Rest {
  readonly path: string
  readonly after: ChainEnd
  readonly last: number
  readonly tree: RecordTree
  readonly boxes: StoredInputBoxes | undefined
}

function nextGroup(tail: LogTail, { path, after, last, tree, boxes }: Rest): SealedGroup | undefined {
  try {
    const texts = tail.read(last)
    return texts.length === 0 ? undefined : withBoxes(toGroup(texts, after, tree), (seq) => boxes?.get(seq))
  } catch (error) {
    throw unusable(path, messageOf(error))
  }
}

function unusable(path: string, why: string): ConfigError {
  return new ConfigError('disk', `${path} cannot be shipped: ${why}. Look at it, and move it away`)
}

/**
 * Ends the calls that a chain has left open, in the chain itself, so that a process that is killed here does not end
 * them twice.
 */
async function endLeftover({ path, chain }: Leftover, { sealing, nowMs, openCalls }: LeftoverDeps): Promise<void> {
  const { store, hasLeft, end, tree } = chain
  if (!hasLeft) {
    const sealer = createSealer(sealing, end)
    const texts = (await openCalls(store.id)).map((call) => sealer.seal(abandonedEntry(call, nowMs())))
    const other = texts.length === 0 ? undefined : await store.append(toGroup(texts, end, tree))
    if (other !== undefined) throw new Error(`another process has written to the chain of ${path}`)
    await store.leave()
  }
  removeChainFiles(path)
}
