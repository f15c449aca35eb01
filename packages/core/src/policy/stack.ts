import type { ParsedPolicy } from './parse.ts'

/** What is in force at one moment. Another object as soon as anything changes. */
export interface CurrentPolicies {
  /** Grows with every change, here or above. */
  readonly revision: number
  readonly parsed: readonly ParsedPolicy[]
}

/** The policies of a gate: its parent's, as they are today, and its own. All are met. */
export interface PolicyStack {
  current(): CurrentPolicies
  /** Replaces the gate's own, at once. */
  replace(own: readonly ParsedPolicy[]): void
}

/** Gives a stack on top of another, or one that stands by itself. */
export function createPolicyStack(own: readonly ParsedPolicy[], parent?: PolicyStack): PolicyStack {
  let above = parent?.current()
  let current: CurrentPolicies = { revision: 1, parsed: [...(above?.parsed ?? []), ...own] }
  const renew = () => {
    above = parent?.current()
    current = { revision: current.revision + 1, parsed: [...(above?.parsed ?? []), ...own] }
  }
  return {
    current() {
      if (parent?.current() !== above) renew()
      return current
    },
    replace(next) {
      own = next
      renew()
    },
  }
}
