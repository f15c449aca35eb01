import type { CallPorts } from '../call/attempt.ts'
import type { Coverage } from '../decide/coverage.ts'
import { factsOfRun } from '../call/history.ts'
import type { RunFacts } from '../history/facts.ts'
import type { MaybePromise, RunOfCall } from '../ports/ports.ts'
import { portsOf, toCallView, type View } from './view.ts'

/**
 * By the `fork` of each gate, which a host's wrapper of a gate keeps: `{ ...gate, view }`. Every view of a gate, of its
 * apps and narrowed ones too, has the ports of that gate.
 */
const portsOfGates = new WeakMap<object, CallPorts>()
const forkedFrom = new WeakMap<CallPorts, CallPorts>()

/** Remembers which ports a gate has, and those of the gate that it is a fork of. */
export function rememberGate(
  { fork }: { readonly fork: object },
  ports: CallPorts,
  parent: CallPorts | undefined,
): void {
  portsOfGates.set(fork, ports)
  if (parent) forkedFrom.set(ports, parent)
}

/**
 * Returns what has happened in a run, for `createSteps` and `narrow`; `undefined` where no rule reads it. Call it as the run
 * begins, too: a run that goes on without a history is taken for one whose history was lost.
 */
export function factsOf(view: View, run: RunOfCall): MaybePromise<RunFacts | undefined> {
  const ports = portsOf(view)
  return ports && factsOfRun(toCallView(view), run, ports)
}

/** Returns whether a value is a view of some gate. */
export function isView(value: unknown): value is View {
  return typeof value === 'object' && value !== null && portsOf(value) !== undefined
}

/**
 * Returns whether a view is of this gate, or of a fork of it, which only tightens.
 *
 * A view of another gate has other tools and another policy: what it is combined with would enforce neither.
 */
export function isViewOf(gate: object, view: View): boolean {
  const own = ownPorts(gate)
  if (!own) return false
  for (let ports = portsOf(view); ports; ports = forkedFrom.get(ports)) if (ports === own) return true
  return false
}

/** Returns what counts the clauses of a gate, for who adds up the counts of several. */
export function countsOf(gate: object): Pick<Coverage, 'told' | 'untold'> | undefined {
  return ownPorts(gate)?.coverage
}

function ownPorts(gate: object): CallPorts | undefined {
  const { fork } = gate as { readonly fork?: unknown }
  return typeof fork === 'function' ? portsOfGates.get(fork) : undefined
}
