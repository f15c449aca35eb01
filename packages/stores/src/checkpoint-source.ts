import { closeSync, existsSync, fstatSync, openSync } from 'node:fs'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { type Checkpoint, parseCheckpoint } from './checkpoint-lines.ts'
import { linesForwards } from './lines.ts'
import type { AuditSource, KeptLeaf } from './shared-audit/source.ts'

/** The log of an audit in a file. */
interface CheckpointSource extends Pick<AuditSource, 'notes' | 'leaves'> {
  readonly path: string
  close(): void
}

/** The number of checkpoints in a page. */
const PAGE = 500

/** Opens the checkpoints as they are now, or returns `undefined` if there is no such file. */
export function openCheckpointSource(path: string): CheckpointSource | undefined {
  if (!existsSync(path)) return undefined
  const fd = openSync(path, 'r')
  const { size } = fstatSync(fd)

  const checkpoints = () => placed(linesForwards(fd, size))
  let replaced: ReadonlySet<number> | undefined

  return {
    path,
    // A note whose checkpoint is ahead of the one before it gets another size, and so is reported: one was removed.
    notes: () =>
      pagesOf(checkpoints(), ({ note, from, after, leaves }) => [
        { note, size: Math.min(from, after) + leaves.length },
      ]),
    async *leaves(from, to) {
      const skipped = (replaced ??= findReplaced(checkpoints()))
      let number = 0
      for await (const page of pagesOf(checkpoints(), (one) => (skipped.has(number++) ? [] : leavesOf(one))))
        yield page.filter(({ index }) => index >= from && index < to)
    },
    close: () => closeSync(fd),
  }
}

/** A checkpoint in its log. */
interface PlacedCheckpoint extends Checkpoint {
  /** The index of its first leaf, according to its note. */
  readonly from: number
  /** The size of the log at the checkpoint before it. */
  readonly after: number
}

function* placed(groups: Iterable<readonly string[]>): Generator<PlacedCheckpoint> {
  let after = 0
  for (const lines of groups)
    for (const line of lines) {
      const checkpoint = parseCheckpoint(line)
      const { before, leaves } = checkpoint
      const from = before.size < 0 ? after : before.size
      yield { ...checkpoint, from, after }
      after = from + leaves.length
    }
}

function leavesOf({ from, leaves }: PlacedCheckpoint): readonly KeptLeaf[] {
  return leaves.map((leaf, i) => ({ index: from + i, leaf }))
}

/**
 * Returns the numbers of checkpoints after which the log goes on from an earlier one: the writer skips checkpoints that
 * it has not signed.
 */
function findReplaced(checkpoints: Iterable<PlacedCheckpoint>): ReadonlySet<number> {
  const replaced = new Set<number>()
  const standing: { readonly number: number; readonly end: number }[] = []
  let number = 0
  for (const { from, leaves } of checkpoints) {
    while ((standing.at(-1)?.end ?? 0) > from) replaced.add(standing.pop()?.number ?? 0)
    standing.push({ number: number++, end: from + leaves.length })
  }
  return replaced
}

async function* pagesOf<Out>(
  checkpoints: Iterable<PlacedCheckpoint>,
  toItems: (checkpoint: PlacedCheckpoint) => readonly Out[],
): AsyncGenerator<readonly Out[]> {
  let page: Out[] = []
  for (const checkpoint of checkpoints) {
    page.push(...toItems(checkpoint))
    if (page.length < PAGE) continue
    yield page
    page = []
    await endOfTurn()
  }
  if (page.length > 0) yield page
}
