import type { Reload } from '../../model/reload.ts'
import { describeChanges } from './describe-rules.ts'

const MAX_LINES = 200
const MAX_IDS = 10

/** Returns a reload as text, with a line for each change. */
export function describeReload(
  reload: Omit<Reload, 'text'>,
  { isDryRun }: { readonly isDryRun: boolean },
): readonly string[] {
  const { changes, access, notCompared = 0, restartNeeded, isApplied, revision } = reload
  const head = isApplied
    ? `revision ${revision.number}`
    : isDryRun && changes.length > 0
      ? 'this would change'
      : 'nothing has changed'
  const lines = [
    ...describeChanges(changes),
    ...access.flatMap(({ caller, people = 1, gains, loses }) => [
      ...(gains.length > 0 ? [`${caller} ${people > 1 ? 'gain' : 'gains'} ${listOf(gains)}`] : []),
      ...(loses.length > 0 ? [`${caller} ${people > 1 ? 'lose' : 'loses'} ${listOf(loses)}`] : []),
    ]),
  ]
  const more = lines.length > MAX_LINES ? [`and ${lines.length - MAX_LINES} more`] : []
  const others =
    notCompared > 0 ? [`${notCompared} other callers may gain or lose, too: they are too many to compare`] : []
  const restart = restartNeeded.length > 0 ? [`restart needed for ${restartNeeded.join(', ')}`] : []
  return [head, ...lines.slice(0, MAX_LINES), ...more, ...others, ...restart]
}

function listOf(ids: readonly string[]): string {
  const more = ids.length > MAX_IDS ? ` and ${ids.length - MAX_IDS} more` : ''
  return `${ids.slice(0, MAX_IDS).join(', ')}${more}`
}

export interface ReloadOptions {
  /** The person who reloads, for the audit. */
  readonly by?: string | undefined
  readonly through: 'signal' | 'api' | 'host' | 'publication' | 'watch' | 'restore'
  /** Whether to report the changes without applying them. */
  readonly isDryRun?: boolean | undefined
  /** Whether to publish the file of this replica to all replicas. */
  readonly publishes?: boolean | undefined
  /** Whether to publish even if a live replica cannot run the file. That replica then starts no calls. */
  readonly isForced?: boolean | undefined
  /** The id from a dry run. If the dry run would now have another result, nothing is reloaded. */
  readonly preview?: string | undefined
  /** The revision whose policy a person restores. */
  readonly restores?: number | undefined
}
