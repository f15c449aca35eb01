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
  /** Where the tools come from: a list, a Toolset, or anything with `tools()`. */
  readonly from: Iterable<Tool> | Pick<Source, 'tools'>
  /** All of them must keep a tool. An empty list keeps all tools. */
  readonly filters?: readonly ToolFilter[]
  /** Comes after all filters; what it denies is left out. All are met. */
  readonly policy?: Policies
  /** Whom the policy is asked about. Default: one of whom nothing is known, for whom conditions mostly fail. */
  readonly caller?: Caller
  /** For `group:` selectors of the policy. */
  readonly groups?: Readonly<Record<string, Group>> | ReadonlyMap<string, Group>
}

const OPTIONS = shapeOf<BuildToolsetOptions>({ from: true, filters: true, policy: true, caller: true, groups: true })

/**
 * Returns the tools of a source that every filter keeps and no policy denies, as a snapshot: later changes of the
 * source do not reach it. An empty source makes an empty set.
 *
 * @throws {ToolgateError} `source_invalid` without a source, `filter_invalid`, and what its tools and policy throw
 * @example
 * const reading = buildToolset({ from: catalog, filters: [byTagsAny('read')], policy: { deny: ['web:*'] } })
 */
export function buildToolset(options: BuildToolsetOptions): Toolset {
  checkShape('buildToolset', options, OPTIONS)
  const { from, filters = [], policy, caller = {}, groups } = options
  checkFilters('filters', filters)
  const { selectors } = parseGroups(groups)
  const all = createToolset(toolsFrom(from, groups && selectors))
  // Only tools are exported.
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
