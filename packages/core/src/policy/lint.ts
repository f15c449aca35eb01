import { nearestNames } from '../decision/nearest.ts'
import { ConfigError } from '../errors.ts'
import { matchesSelector, type Selector } from '../tools/selector.ts'
import type { Toolset } from '../tools/toolset.ts'
import { CLAUSE_KINDS, type ParsedPolicy } from './parse.ts'

/** Something that is allowed and probably not meant. */
export interface LintWarning {
  readonly code: 'selector_unmatched'
  /** Such as `policy[0].deny[1]`. */
  readonly path: string
  readonly text: string
}

/** Gives a warning for each selector that names no tool of the snapshot. */
export function lintPolicies(policies: readonly ParsedPolicy[], snapshot: Toolset): readonly LintWarning[] {
  return unmatched(policies, snapshot).map(({ path, selector }) => ({
    code: 'selector_unmatched',
    path,
    text: describe(selector, snapshot),
  }))
}

/**
 * Checks that every plain name in the policies names a tool, where the tools are fixed.
 *
 * @throws {ConfigError} `selector_invalid`, suggesting what may have been meant
 */
export function checkSelectors(policies: readonly ParsedPolicy[], snapshot: Toolset): void {
  const wrong = unmatched(policies, snapshot).find(({ selector }) => selector.kind === 'id')
  if (wrong) throw new ConfigError(wrong.path, describe(wrong.selector, snapshot), { code: 'selector_invalid' })
}

function unmatched(policies: readonly ParsedPolicy[], snapshot: Toolset): { path: string; selector: Selector }[] {
  return policies.flatMap((policy, p) =>
    CLAUSE_KINDS.flatMap((kind) =>
      (policy[kind] ?? []).flatMap((clause) =>
        clause.selectors
          .filter((selector) => !snapshot.tools.some((tool) => matchesSelector(selector, tool, 'possible')))
          .map((selector) => ({ path: `policy[${p}].${kind}[${clause.index}]`, selector })),
      ),
    ),
  )
}

function describe(selector: Selector, snapshot: Toolset): string {
  const { text } = selector
  if (selector.kind !== 'id') return `"${text}" names no tool`
  const elsewhere = snapshot.tools.find((tool) => tool.name === text)
  if (elsewhere)
    return `"${text}" names no tool; "${elsewhere.id}" has that name, "*:${text}" would name it in any namespace`
  const near = nearestNames(text, snapshot.ids, 3)
  return `"${text}" names no tool${near.length > 0 ? `; the nearest are ${near.map((id) => `"${id}"`).join(', ')}` : ''}`
}
