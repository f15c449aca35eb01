import type { Halt, HaltRequest, HaltTarget } from '../state/halts.ts'
import { matchesSelector, parseSelector } from '../tools/selector.ts'
import { type Toolset, unknownTools } from '../tools/toolset.ts'
import type { Shared } from './parts.ts'

type Halting = Pick<Shared, 'catalog' | 'halts' | 'recorder' | 'rules'>

/** Stores and records a halt. Resolves when the state store has it. */
export async function halt(shared: Halting, request: HaltRequest): Promise<Halt> {
  const { catalog, halts, recorder, rules } = shared
  if (!catalog.dynamic) checkTarget(shared, request)
  const { halt: made, stored } = halts.set(request)
  recorder.halted(made)
  if (made.target.tool !== undefined) {
    const selector = parseSelector(made.target.tool, rules.now.groups.selectors, 'servers')
    rules.now.names.check([{ path: 'halt.tool', selector }])
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

/** Rejects an unknown name, because a person in a hurry must not believe that a misspelt tool is halted. */
function checkTarget({ catalog, rules }: Halting, { tool }: HaltTarget): void {
  if (typeof tool !== 'string') return
  const selector = parseSelector(tool, rules.now.groups.selectors, 'servers')
  const snapshot = catalog.snapshot()
  const isNamed = (set: Toolset) => set.tools.some((one) => matchesSelector(selector, one, 'possible'))
  if (isNamed(snapshot) || isNamed(catalog.items())) return
  throw unknownTools([tool], snapshot.ids)
}
