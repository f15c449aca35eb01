/** A part of the rules that differs between two revisions. It has only names, no key, header or variable. */
export interface RuleChange {
  readonly section:
    | 'servers'
    | 'callers'
    | 'groups'
    | 'apps'
    | 'aliases'
    | 'labels'
    | 'limits'
    | 'grants'
    | 'policy'
    | 'approvals'
    | 'listen'
  readonly what: 'added' | 'removed' | 'changed'
  /** Such as the name of a server, a limit as it is written, or `policy[0].deny[1]`. */
  readonly name: string
  /** The fields that differ. */
  readonly fields?: readonly string[]
}

/**
 * The currently known tools that the configured callers with one name, or the people who signed in, gain or lose by a
 * reload.
 */
export interface AccessChange {
  /** A name such as `vera of acme`, or `12 people such as ann of acme, bo of acme`. */
  readonly caller: string
  /** The number of people who signed in. Absent for configured callers. */
  readonly people?: number
  readonly gains: readonly string[]
  readonly loses: readonly string[]
}

/** What a reload changed, or would change. It contains no secrets. */
export interface Reload {
  /** Whether the rules were replaced. */
  readonly isApplied: boolean
  readonly revision: { readonly id: string; readonly number: number }
  readonly changes: readonly RuleChange[]
  readonly access: readonly AccessChange[]
  /** The number of callers and people who may gain or lose more, because there are too many to compare. */
  readonly notCompared?: number
  /** The changed fields that need a restart, because they are read only at start. */
  readonly restartNeeded: readonly string[]
  /** The id of a dry run. Send it with a reload to apply exactly these changes. */
  readonly preview?: string
  /** The changes as lines of text. */
  readonly text: readonly string[]
}
