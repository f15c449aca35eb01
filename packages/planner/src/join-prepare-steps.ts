import type { AnyPrepareStep } from './scope.ts'

/** Both are asked, the planner's first: lists of tools are met, and of the rest the later word holds. */
export function joinPrepareSteps(
  first: AnyPrepareStep | undefined,
  second: AnyPrepareStep | undefined,
): AnyPrepareStep | undefined {
  if (!first || !second) return first ?? second
  return async (context) => {
    const a = await first(context)
    const b = await second({
      ...context,
      ...(a?.context !== undefined && { context: a.context }),
      ...(a?.instructions !== undefined && { instructions: a.instructions }),
    })
    if (isNothing(a) || isNothing(b)) return a ?? b
    // What is no answer is passed on, for the step to refuse it.
    if (typeof a !== 'object') return a
    if (typeof b !== 'object') return b
    const given = new Map([...Object.entries(a), ...Object.entries(b).filter(([, value]) => value !== undefined)])
    const options = { ...a.options, ...b.options }
    return { ...Object.fromEntries(given), options, activeTools: meetLists(a.activeTools, b.activeTools) }
  }
}

type Change = Awaited<ReturnType<AnyPrepareStep>>
type List = NonNullable<Change>['activeTools']

function isNothing(change: Change | null): change is undefined {
  return change === undefined || change === null
}

function meetLists(a: List, b: List): List {
  const wrong = [a, b].find((list) => list !== undefined && !Array.isArray(list))
  if (wrong !== undefined) return wrong
  return a && b ? a.filter((id) => b.includes(id)) : (a ?? b)
}
