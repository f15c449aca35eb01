import type { Halt, HaltRequest, HaltTarget } from '../state/halts.ts'
import { parseSelector } from '../tools/selector.ts'
import type { Shared } from './parts.ts'

type Halting = Pick<Shared, 'halts' | 'recorder' | 'rules'>

/**
 * Stores and records a halt. Resolves when the state store has it.
 *
 * A tool that nobody knows is halted too, with a warning: a mistaken halt can be released, but a rejected one stops
 * nothing.
 */
export async function halt(shared: Halting, request: HaltRequest): Promise<Halt> {
  const { halts, recorder, rules } = shared
  const { halt: made, stored } = halts.set(request)
  recorder.halted(made)
  if (made.target.tool !== undefined) {
    const selector = parseSelector(made.target.tool, rules.now.groups.selectors, 'servers')
    rules.now.names.warn([{ path: 'halt.tool', selector }])
  }
  await stored
  return made
}

/** Ends a halt and records that. */
export async function release(
  { halts, recorder }: Halting,
  { by, ...target }: (HaltTarget | { readonly id: string }) & { readonly by?: string | undefined },
): Promise<Halt> {
  const { halt: ended, stored } = halts.release(target, (released) => recorder.released(released, by))
  await stored
  return ended
}
