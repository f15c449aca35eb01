/** A part of the rules that differs between two revisions. Names only: no key, header or variable is in it. */
export interface RuleChange {
  readonly section: 'servers' | 'callers' | 'groups' | 'apps' | 'aliases' | 'labels' | 'limits' | 'policy' | 'listen'
  readonly what: 'added' | 'removed' | 'changed'
  /** Such as the name of a server, a limit as it is written, or `policy[0].deny[1]`. */
  readonly name: string
  /** The fields that differ. */
  readonly fields?: readonly string[]
}

/** What the configured callers with one name gain and lose by a reload, of the tools that are known now. */
export interface AccessChange {
  readonly caller: string
  readonly gains: readonly string[]
  readonly loses: readonly string[]
}

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
