import { spend } from '../work.ts'
import { absorb, type Compiled, type Frame, NODE_STEPS, type PartCompiler } from './frame.ts'
import type { comprehensionOf } from './environment.ts'
import { countNodes } from './tree.ts'
import { CelError, keysOf, kindOf, toBool, toCel } from './values.ts'

/** The body of a macro, run for each item. */
interface Loop {
  readonly of: Compiled
  readonly slot: number
  /** Steps for each item. */
  readonly steps: number
}

type MacroTree = NonNullable<ReturnType<typeof comprehensionOf>>

/** Compiles a macro over the items of a list or the keys of a map. Each item costs steps for each node of the macro. */
export function compileComprehension(
  compiler: PartCompiler,
  { name, of, variable, holds, result }: MacroTree,
): Compiled {
  const [inner, slot] = compiler.within(variable ?? '')
  const nodes = [holds, result].reduce((total, node) => total + (node ? countNodes(node) : 0), 1)
  const loop = { of: compiler.compile(of), slot, steps: nodes * NODE_STEPS }
  const test = holds && inner.compile(holds)
  switch (name) {
    case 'all':
      return quantifier(loop, test as Compiled, false)
    case 'exists':
      return quantifier(loop, test as Compiled, true)
    case 'exists_one':
      return (frame) => selected(frame, loop, test as Compiled).length === 1
    case 'filter':
      return (frame) => selected(frame, loop, test as Compiled)
    default:
      return mapped(loop, test, result && inner.compile(result))
  }
}

function itemsOf(frame: Frame, of: Compiled): readonly unknown[] {
  const value = of(frame)
  if (Array.isArray(value)) return value
  if (kindOf(value) !== 'map') throw new CelError(`no such overload: a macro over ${kindOf(value)}`)
  return keysOf(frame.work, value as object)
}

/** Starts with the next item. */
function take(frame: Frame, { slot, steps }: Loop, item: unknown): unknown {
  spend(frame.work, steps)
  return (frame.variables[slot] = toCel(item))
}

/** `decides`: the answer for one item that gives the result, even if other items fail. */
function quantifier(loop: Loop, test: Compiled, decides: boolean): Compiled {
  return (frame) => {
    let failure: unknown
    for (const item of itemsOf(frame, loop.of)) {
      try {
        take(frame, loop, item)
        if (toBool(test(frame)) === decides) return decides
      } catch (error) {
        absorb(frame, error)
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure as CelError
    return !decides
  }
}

function selected(frame: Frame, loop: Loop, test: Compiled): readonly unknown[] {
  const found: unknown[] = []
  for (const item of itemsOf(frame, loop.of)) {
    const value = take(frame, loop, item)
    if (toBool(test(frame))) found.push(value)
  }
  return found
}

function mapped(loop: Loop, test: Compiled | undefined, result: Compiled | undefined): Compiled {
  return (frame) => {
    const found: unknown[] = []
    for (const item of itemsOf(frame, loop.of)) {
      const value = take(frame, loop, item)
      if (!test || toBool(test(frame))) found.push(result ? result(frame) : value)
    }
    return found
  }
}
