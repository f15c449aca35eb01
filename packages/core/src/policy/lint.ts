import type { FaultCode } from '../errors.ts'
import { findConfusions } from '../tools/confusables.ts'
import { findNearNames, findTaken, selectorsOfAliases } from '../tools/aliases.ts'
import type { Source } from '../tools/catalog.ts'
import type { GroupSelectors } from '../tools/selector.ts'
import { schemaWarningsOf } from '../tools/schema-warnings.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { findUnreachable } from './lint-reach.ts'
import type { ParsedPolicy } from './parse.ts'
import { findUnknown, mayStillCome, selectorsOfPolicies, type WrittenSelector } from './unknown-names.ts'

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
  | 'schema_skipped'
  | 'alias_taken'
  | 'group_cycle'
  | 'group_unknown'
  | FaultCode

export interface LintMore {
  /** Selectors beside those of policies and groups. */
  readonly written?: readonly WrittenSelector[]
  /** Sources whose tools are not known yet: a name that one of them may bring is no warning. */
  readonly unlisted?: readonly Source[]
}

/** Returns what is allowed and probably not meant: selectors that name nothing, tools that nobody sees, names that look alike, and keywords of schemas that are not checked. */
export function lintAll(
  policies: readonly ParsedPolicy[],
  groups: GroupSelectors,
  snapshot: Toolset,
  { written: others = [], unlisted = [] }: LintMore = {},
): readonly LintWarning[] {
  const { aliases = new Map() } = groups
  const written = [
    ...selectorsOfPolicies(policies),
    ...selectorsOfGroups(groups),
    ...selectorsOfAliases(aliases),
    ...others,
  ]
  return [
    ...findUnknown(written, snapshot)
      .filter(({ selector }) => !mayStillCome(selector, unlisted))
      .map(({ path, text }): LintWarning => ({ code: 'selector_unmatched', path, text })),
    ...findUnreachable(policies, snapshot).map((found): LintWarning => ({ code: 'tool_unreachable', ...found })),
    ...findTaken(aliases, snapshot).map((found): LintWarning => ({ code: 'alias_taken', ...found })),
    ...[...findConfusions(snapshot.ids), ...findNearNames(snapshot.ids, aliases)].map(({ ids, text }): LintWarning => ({
      code: 'name_confusable',
      path: 'tools',
      text,
      tools: ids,
    })),
    ...snapshot.tools.flatMap(lintSchema),
  ]
}

/** Returns a warning for each keyword of a tool's input schema that is not checked. */
export function lintSchema(tool: Tool): readonly LintWarning[] {
  return schemaWarningsOf(tool).map(({ pointer, message }) => ({
    code: 'schema_skipped',
    path: `tools.${tool.id}.inputSchema${pointer}`,
    text: message,
    tools: [tool.id],
  }))
}

/** Returns the selectors of every group's `tools`. */
export function selectorsOfGroups(groups: GroupSelectors): readonly WrittenSelector[] {
  return [...groups].flatMap(([name, members]) =>
    members.flatMap((selector, i) =>
      selector.kind === 'joined' ? [] : [{ path: `groups.${name}.tools[${i}]`, selector }],
    ),
  )
}
