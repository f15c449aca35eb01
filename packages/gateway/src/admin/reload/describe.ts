import type { RuleChange } from './changes.ts'
import { describeChanges } from './describe-rules.ts'
import type { AccessChange } from './who-gains.ts'

/** What a reload changed, or would change. It holds no secrets. */
export interface Reload {
  /** Whether the rules were replaced. */
  readonly isApplied: boolean
  readonly revision: { readonly id: string; readonly number: number }
  readonly changes: readonly RuleChange[]
  readonly access: readonly AccessChange[]
  /** The fields that are read at the start only, and that differ now. */
  readonly restartNeeded: readonly string[]
  /** Of a dry run: its name, for a reload that is to apply exactly this. */
  readonly preview?: string
  /** The same in words, a line each. */
  readonly text: readonly string[]
}

const MAX_LINES = 200
const MAX_IDS = 10

/** Returns a reload in words, a line for each change. */
export function describeReload(
  reload: Omit<Reload, 'text'>,
  { isDryRun }: { readonly isDryRun: boolean },
): readonly string[] {
  const { changes, access, restartNeeded, isApplied, revision } = reload
  const head = isApplied
    ? `revision ${revision.number}`
    : isDryRun && changes.length > 0
      ? 'this would change'
      : 'nothing has changed'
  const lines = [
    ...describeChanges(changes),
    ...access.flatMap(({ caller, gains, loses }) => [
      ...(gains.length > 0 ? [`${caller} gains ${listOf(gains)}`] : []),
      ...(loses.length > 0 ? [`${caller} loses ${listOf(loses)}`] : []),
    ]),
  ]
  const more = lines.length > MAX_LINES ? [`and ${lines.length - MAX_LINES} more`] : []
  const restart = restartNeeded.length > 0 ? [`restart needed for ${restartNeeded.join(', ')}`] : []
  return [head, ...lines.slice(0, MAX_LINES), ...more, ...restart]
}

function listOf(ids: readonly string[]): string {
  const more = ids.length > MAX_IDS ? ` and ${ids.length - MAX_IDS} more` : ''
  return `${ids.slice(0, MAX_IDS).join(', ')}${more}`
}
