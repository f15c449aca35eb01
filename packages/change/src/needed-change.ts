import type { CallFacts } from '@toolgate/core/decide'
import type { ReasonCode } from '@toolgate/core'

/** One change of what a decision depends on. */
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

/** The call that is asked about. */
export interface AskedCall extends Partial<Pick<CallFacts, 'input' | 'facts'>> {
  /** Returns an input as it is decided; `undefined` if the tool does not take it. Default: it takes any, as it is. */
  accept?(input: unknown): { readonly value: unknown } | undefined
}
