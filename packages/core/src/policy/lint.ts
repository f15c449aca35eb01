import { nearestNames } from '../decision/nearest.ts'
import { ConfigError, type FaultCode, UnknownToolError } from '../errors.ts'
import { findConfusions } from '../tools/confusables.ts'
import { type GroupSelectors, matchesSelector, type Selector } from '../tools/selector.ts'
import type { Toolset } from '../tools/toolset.ts'
import { findUnreachable } from './lint-reach.ts'
import { CLAUSE_KINDS, type ParsedPolicy } from './parse.ts'

/** Something that is allowed and probably not meant; or, of a configuration, something that a gate would refuse. */
export interface LintWarning {
  readonly code: LintCode
  /** Such as `policy[0].deny[1]`. */
  readonly path: string
  readonly text: string
  /** The tools that it is about, where it is about some. */
  readonly tools?: readonly string[]
}

export type LintCode =
  | 'selector_unmatched'
  | 'tool_unreachable'
  | 'name_confusable'
  | 'group_cycle'
  | 'group_unknown'
  | FaultCode

/** Gives what is allowed and probably not meant: selectors that name nothing, tools that nobody sees, names that look alike. */
export function lintAll(
  policies: readonly ParsedPolicy[],
  groups: GroupSelectors,
  snapshot: Toolset,
): readonly LintWarning[] {
  return [
    ...lintPolicies(policies, snapshot),
    ...lintMembers(groups, snapshot),
    ...findUnreachable(policies, snapshot).map((found): LintWarning => ({ code: 'tool_unreachable', ...found })),
    ...findConfusions(snapshot.ids).map(({ ids, text }): LintWarning => ({
      code: 'name_confusable',
      path: 'tools',
      text,
      tools: ids,
    })),
  ]
}

/** Gives a warning for each selector of a policy that names no tool of the snapshot. */
export function lintPolicies(policies: readonly ParsedPolicy[], snapshot: Toolset): readonly LintWarning[] {
  return unmatched(policies, snapshot).map(({ path, selector }) => warning(path, selector, snapshot))
}

function lintMembers(groups: GroupSelectors, snapshot: Toolset): readonly LintWarning[] {
  return [...groups].flatMap(([name, members]) =>
    members.flatMap((selector, i) =>
      selector.kind === 'joined' || namesATool(selector, snapshot)
        ? []
        : [warning(`groups.${name}.tools[${i}]`, selector, snapshot)],
    ),
  )
}

function warning(path: string, selector: Selector, snapshot: Toolset): LintWarning {
  return { code: 'selector_unmatched', path, text: describe(selector, snapshot) }
}

/**
 * Checks that every plain name in the policies names a tool, where the tools are fixed.
 *
 * @throws {ConfigError} `selector_invalid`, suggesting what may have been meant
 */
export function checkSelectors(policies: readonly ParsedPolicy[], snapshot: Toolset): void {
  checkNames(unmatched(policies, snapshot), snapshot)
}

/** Gives a warning for each selector that names no tool of the snapshot. */
export function lintSelectors(written: readonly WrittenSelector[], snapshot: Toolset): readonly LintWarning[] {
  return written
    .filter(({ selector }) => !namesATool(selector, snapshot))
    .map(({ path, selector }) => warning(path, selector, snapshot))
}

/**
 * Checks that every plain name among some selectors names a tool, where the tools are fixed.
 *
 * @throws {ConfigError} `selector_invalid`, suggesting what may have been meant
 */
export function checkNames(written: readonly WrittenSelector[], snapshot: Toolset): void {
  const wrong = written.find(({ selector }) => selector.kind === 'id' && !namesATool(selector, snapshot))
  if (!wrong) return
  const { path, selector } = wrong
  const cause = new UnknownToolError(selector.text, nearestNames(selector.text, snapshot.ids, 3))
  throw new ConfigError(path, describe(selector, snapshot), { code: 'selector_invalid', cause })
}

/** A selector, and where it was written. */
export interface WrittenSelector {
  readonly path: string
  readonly selector: Selector
}

function unmatched(policies: readonly ParsedPolicy[], snapshot: Toolset): WrittenSelector[] {
  return policies.flatMap((policy, p) =>
    CLAUSE_KINDS.flatMap((kind) =>
      (policy[kind] ?? []).flatMap((clause) =>
        clause.selectors
          .filter((selector) => !namesATool(selector, snapshot))
          .map((selector) => ({ path: `policy[${p}].${kind}[${clause.index}]`, selector })),
      ),
    ),
  )
}

function namesATool(selector: Selector, snapshot: Toolset): boolean {
  return snapshot.tools.some((tool) => matchesSelector(selector, tool, 'possible'))
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
