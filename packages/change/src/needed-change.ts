import type { CallFacts } from '@toolgate/core/decide'
import type { ReasonCode } from '@toolgate/core'

/** One change of a caller, an input, a policy or a state. */
export interface NeededChange {
  readonly on: 'caller' | 'input' | 'policy' | 'state'
  /**
   * `release`: ends a state, such as a lock or a halt. `allow`: adds an `allow` for the item. `untag`: requires one tag
   * less.
   */
  readonly does: 'add' | 'remove' | 'set' | 'allow' | 'untag' | 'release'
  /** For people. */
  readonly text: string
  /** The field of a caller or an input, such as `roles` or `order.id`. */
  readonly field?: string
  readonly value?: string | number | boolean
  /** The place of the rule, for a change of a policy, such as `policy[0].deny[1]`. */
  readonly path?: string
  /** The reason code of the state, for a change of a state. */
  readonly code?: ReasonCode
  /** The name of the state, for a change of a state. */
  readonly state?: string
}

/** The call to find changes for. */
export interface AskedCall extends Partial<Pick<CallFacts, 'input' | 'facts'>> {
  /** Returns the input with defaults; `undefined` if the tool rejects it. Default: accepts any input unchanged. */
  accept?(input: unknown): { readonly value: unknown } | undefined
}
