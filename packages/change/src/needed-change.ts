import type { CallFacts } from '@toolgate/core/decide'
import type { ReasonCode } from '@toolgate/core'

/** One change of a caller, an input, a policy or a state. */
export interface NeededChange {
  readonly on: 'caller' | 'input' | 'policy' | 'state'
  /** `release`: of a state, such as a lock or a halt. `allow`: an `allow` for the item. `untag`: a required tag less. */
  readonly does: 'add' | 'remove' | 'set' | 'allow' | 'untag' | 'release'
  /** For people. */
  readonly text: string
  /** Of a caller or an input: the field, such as `roles` or `order.id`. */
  readonly field?: string
  readonly value?: string | number | boolean
  /** Of a policy: where the rule is written, such as `policy[0].deny[1]`. */
  readonly path?: string
  /** Of a state: the code of the reason that it gives. */
  readonly code?: ReasonCode
  /** Of a state: which one. */
  readonly state?: string
}

/** The call to find changes for. */
export interface AskedCall extends Partial<Pick<CallFacts, 'input' | 'facts'>> {
  /** Returns the input with defaults; `undefined` if the tool rejects it. Default: accepts any input unchanged. */
  accept?(input: unknown): { readonly value: unknown } | undefined
}
