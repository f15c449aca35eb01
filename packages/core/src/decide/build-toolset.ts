import { type Caller, defineCaller } from '../ports/caller.ts'
import { checkShape, shapeOf, ToolgateError } from '@toolgate/values'
import { indexPolicy } from './layers/clauses.ts'
import { callerEffects, fixedEffects } from './layers/policy.ts'
import { parsePolicies } from '../policy/parse.ts'
import type { Policies } from '../policy/policy.ts'
import { checkKnown, selectorsOfPolicies } from '../policy/unknown-names.ts'
import { hasBit } from '../tools/bits.ts'
import type { Source } from '../tools/catalog.ts'
import { and, checkFilters, type ToolFilter } from '../tools/filters.ts'
import { type Group, parseGroups } from '../tools/groups.ts'
import { readSource } from '../tools/read-source.ts'
import type { GroupSelectors } from '../tools/selector.ts'
import { createToolset, type Toolset } from '../tools/toolset.ts'
import type { Tool } from '../tools/tool.ts'
import { evaluate } from './evaluation.ts'

export interface BuildToolsetOptions {
  /** The source of the tools: a list, a Toolset, or any object with `tools()`. */
  readonly from: Iterable<Tool> | Pick<Source, 'tools'>
  /** Every filter must keep a tool. An empty list keeps all tools. */
  readonly filters?: readonly ToolFilter[]
  /** Applied after all filters. Tools that it denies are left out. All policies of a list apply. */
  readonly policy?: Policies
  /** The caller that the policy is evaluated for. Default: an anonymous caller, for whom most conditions fail. */
  readonly caller?: Caller
  /** The groups for `group:` selectors of the policy. */
  readonly groups?: Readonly<Record<string, Group>> | ReadonlyMap<string, Group>
}

const OPTIONS = shapeOf<BuildToolsetOptions>({ from: true, filters: true, policy: true, caller: true, groups: true })

/**
 * Returns the tools of a source that every filter keeps and no policy denies. The result is a snapshot: later changes of
 * the source do not affect it. An empty source gives an empty set.
 *
 * @throws {ToolgateError} `source_invalid` without a source, `filter_invalid`, and any error of its tools and policy
 * @example
 * const reading = buildToolset({ from: catalog, filters: [byTagsAny('read')], policy: { deny: ['web:*'] } })
 */
export function buildToolset(options: BuildToolsetOptions): Toolset {
  checkShape('buildToolset', options, OPTIONS)
  const { from, filters = [], policy, caller = {}, groups } = options
  checkFilters('filters', filters)
  const { selectors } = parseGroups(groups)
  const all = createToolset(toolsFrom(from, groups && selectors))
  // Only tools are returned, no other kinds.
  const kept = all.filter(({ kind }) => kind === 'tool').filter(and(...filters))
  const parsed = parsePolicies(policy, selectors)
  checkKnown(
    selectorsOfPolicies(parsed),
    all.filter(({ kind }) => kind === 'tool'),
    {
      items: all.filter(({ kind }) => kind !== 'tool'),
      sources: [],
    },
  )
  const asked = defineCaller(caller)
  const effects = parsed.flatMap((one, i) => {
    const index = indexPolicy(one, i, kept)
    return [...fixedEffects(index), ...callerEffects(index, asked)]
  })
  const visible = evaluate(kept, effects).visible.bits
  return kept.filter(({ id }) => hasBit(visible, kept.indexOf(id)))
}

function toolsFrom(
  from: BuildToolsetOptions['from'] | undefined | null,
  groups: GroupSelectors | undefined,
): Iterable<Tool> {
  if (typeof from !== 'object' || from === null)
    throw new ToolgateError('source_invalid', 'buildToolset needs a source of tools in `from`.')
  const { tools, rejected } = readSource(Symbol.iterator in from ? { tools: () => from } : from, groups)
  const [first] = rejected
  if (first) throw new ToolgateError(first.code, first.reason)
  return tools
}
