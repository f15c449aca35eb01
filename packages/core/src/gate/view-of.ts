import type { CallPorts } from '../call/attempt.ts'
import type { Coverage } from '../decide/coverage.ts'
import { factsOfRun } from '../call/history.ts'
import type { RunOfCall } from '../ports/ports.ts'
import { portsOf, toCallView, type View } from './view.ts'

/**
 * The ports of each gate, by its `fork` method, which a host's wrapper such as `{ ...gate, view }` keeps. All views of a
 * gate, including views of apps and narrowed views, share its ports.
 */
const portsOfGates = new WeakMap<object, CallPorts>()
const forkedFrom = new WeakMap<CallPorts, CallPorts>()

/** Remembers the ports of a gate, and of the gate that it was forked from. */
export function rememberGate(
  { fork }: { readonly fork: object },
  ports: CallPorts,
  parent: CallPorts | undefined,
): void {
  portsOfGates.set(fork, ports)
  if (parent) forkedFrom.set(ports, parent)
}

/**
 * Returns the history of a run, for `createSteps` and `narrow`; `undefined` if no rule reads it. Call it when the run
 * begins: a run that continues without a history counts as one whose history was lost.
 */
export function factsOf(view: View, run: RunOfCall) {
  const ports = portsOf(view)
  return ports && factsOfRun(toCallView(view), run, ports)
}

/** Returns whether a value is a view of some gate. */
export function isView(value: unknown): value is View {
  return typeof value === 'object' && value !== null && portsOf(value) !== undefined
}

/**
 * Returns whether a view belongs to this gate or to a fork of it.
 *
 * Check it before you combine a view with a gate: a view of another gate has other tools and another policy.
 */
export function isViewOf(gate: object, view: View): boolean {
  const own = ownPorts(gate)
  if (!own) return false
  for (let ports = portsOf(view); ports; ports = forkedFrom.get(ports)) if (ports === own) return true
  return false
}

/** Returns the clause counts of a gate. Use it to add up the counts of several gates. */
export function countsOf(gate: object): Pick<Coverage, 'told' | 'untold'> | undefined {
  return ownPorts(gate)?.coverage
}

function ownPorts(gate: object): CallPorts | undefined {
  const { fork } = gate as { readonly fork?: unknown }
  return typeof fork === 'function' ? portsOfGates.get(fork) : undefined
}
