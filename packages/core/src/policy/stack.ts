import type { ParsedPolicy } from './parse.ts'

/** What is in force at one moment. Another object as soon as anything changes. */
export interface PoliciesInForce {
  /** Grows with every change, here or above. */
  readonly revision: number
  readonly parsed: readonly ParsedPolicy[]
}

/** The policies of a gate: its parent's, as they are today, and its own. All are met. */
export interface PolicyStack {
  inForce(): PoliciesInForce
  /** Replaces the gate's own, at once. */
  replace(own: readonly ParsedPolicy[]): void
}

/** Gives a stack on top of another, or one that stands by itself. */
export function createPolicyStack(own: readonly ParsedPolicy[], parent?: PolicyStack): PolicyStack {
  let above = parent?.inForce()
  let current: PoliciesInForce = { revision: 1, parsed: [...(above?.parsed ?? []), ...own] }
  const renew = () => {
    above = parent?.inForce()
    current = { revision: current.revision + 1, parsed: [...(above?.parsed ?? []), ...own] }
  }
  return {
    inForce() {
      if (parent?.inForce() !== above) renew()
      return current
    },
    replace(next) {
      own = next
      renew()
    },
  }
}
