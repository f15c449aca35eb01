import type { AnyPrepareStep } from './scope.ts'

/** Both are asked, the planner's first: lists of tools are met, and of the rest the later word holds. */
export function joinPrepareSteps(
  first: AnyPrepareStep | undefined,
  second: AnyPrepareStep | undefined,
): AnyPrepareStep | undefined {
  if (!first || !second) return first ?? second
  return async (context) => {
    const a = await first(context)
    const b = await second(a?.context === undefined ? context : { ...context, context: a.context })
    if (!a || !b) return a ?? b
    const given = new Map([...Object.entries(a), ...Object.entries(b).filter(([, value]) => value !== undefined)])
    const options = { ...a.options, ...b.options }
    return { ...Object.fromEntries(given), options, activeTools: meetLists(a.activeTools, b.activeTools) }
  }
}

function meetLists(a: readonly string[] | undefined, b: readonly string[] | undefined): readonly string[] | undefined {
  return a && b ? a.filter((id) => b.includes(id)) : (a ?? b)
}
