import type { CallFacts } from '@toolgate/core/decide'
import type { ReasonCode } from '@toolgate/core'

/** One change of a caller, an input, a policy or a state. */
export interface NeededChange {
  readonly on: 'caller' | 'input' | 'policy' | 'state'
  /** `release` ends a state, such as a lock or a halt. `allow` adds an `allow` for the item. `untag` removes a required tag. */
  readonly does: 'add' | 'remove' | 'set' | 'allow' | 'untag' | 'release'
  /** Shown to people. */
  readonly text: string
  /** For a caller or an input: the field, such as `roles` or `order.id`. */
  readonly field?: string
  readonly value?: string | number | boolean
  /** For a policy: the path of the rule, such as `policy[0].deny[1]`. */
  readonly path?: string
  /** For a state: the code of the reason that it causes. */
  readonly code?: ReasonCode
  /** For a state: its name. */
  readonly state?: string
}

/** The call to find changes for. */
export interface AskedCall extends Partial<Pick<CallFacts, 'input' | 'facts'>> {
  /** Returns the input with defaults; `undefined` if the tool rejects it. Default: accepts any input unchanged. */
  accept?(input: unknown): { readonly value: unknown } | undefined
}
