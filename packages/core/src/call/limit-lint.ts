import type { LintWarning } from '../policy/lint.ts'
import { includesSelector } from '../tools/selector-includes.ts'
import type { ParsedLimit } from './limits.ts'

/** A limit that can never be reached. */
interface CoveredLimit extends LintWarning {
  readonly code: 'limit_covered'
}

/**
 * Finds limits that can never be reached, because a stricter one also counts all of their calls. All limits of a tool
 * apply: `*:1/60,web_search:2/60` allows one call of web_search.
 */
export function lintLimits(limits: readonly ParsedLimit[]): readonly CoveredLimit[] {
  return limits.flatMap((limit): CoveredLimit[] => {
    const by = limits.find((other) => isAlwaysFirst(other, limit))
    if (!by) return []
    const of = `${limit.selector.text}:${limit.label}`
    const text = `"${of}" changes nothing: ${by.path} ("${by.selector.text}:${by.label}") applies too, and is stricter; a limit for some tools is no exception from one for more tools`
    return [{ code: 'limit_covered', path: limit.path, text }]
  })
}

/** Returns whether one limit always refuses before another one does. */
function isAlwaysFirst(strict: ParsedLimit, limit: ParsedLimit): boolean {
  if (strict === limit || strict.costing || limit.costing || !includesSelector(strict.selector, limit.selector))
    return false
  // A limit that counts more calls together is used up earlier.
  if (!strict.per.every((part) => limit.per.includes(part) || (part === 'tool' && isOneTool(limit)))) return false
  const most = Math.ceil(limit.windowMs / strict.windowMs) * strict.max
  return most < limit.max || (most === limit.max && strict.windowMs > limit.windowMs)
}

function isOneTool({ selector }: ParsedLimit): boolean {
  return selector.kind === 'id'
}
