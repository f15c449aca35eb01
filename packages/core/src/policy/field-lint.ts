import { type Field, findField, type Step } from '@toolgate/values/json-schema'
import type { Source } from '../tools/catalog.ts'
import { matchesSelector, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { didYouMean } from '@toolgate/values'
import type { CelNode } from './cel-tree.ts'
import { type FieldRead, fieldReadsOf } from './field-reads.ts'
import type { LintWarning } from './lint.ts'
import { CLAUSE_KINDS, type ParsedPolicy } from './parse.ts'
import { mayStillCome } from './unknown-names.ts'

/** A condition or a cost, and the tools that it applies to. */
export interface FieldUse {
  readonly path: string
  readonly label: string
  readonly selectors: readonly Selector[]
  readonly trees: readonly CelNode[]
}

/** Returns the conditions of policies that may read an input. */
export function fieldUsesOf(policies: readonly ParsedPolicy[]): readonly FieldUse[] {
  return policies.flatMap((policy) =>
    CLAUSE_KINDS.flatMap((kind) => policy[kind] ?? []).flatMap(({ path, label, selectors, when, unless, input }) => {
      const trees = [when, unless, input].flatMap((condition) => condition?.tree ?? [])
      return trees.length === 0 ? [] : [{ path, label, selectors, trees }]
    }),
  )
}

interface Priced {
  readonly path: string
  readonly selector: Selector
  readonly costing?:
    | (Readonly<Record<'cost', { readonly tree: CelNode }>> & {
        readonly settle: { readonly tree: CelNode } | undefined
      })
    | undefined
}

/** Returns the costs of limits. */
export function fieldUsesOfLimits(limits: readonly Priced[]): readonly FieldUse[] {
  return limits.flatMap(({ path, selector, costing }) => {
    if (!costing) return []
    const trees = [costing.cost, costing.settle].flatMap((amount) => amount?.tree ?? [])
    return [{ path, label: selector.text, selectors: [selector], trees }]
  })
}

/** A field that no tool has, or one that is compared with a value of another type. */
export interface FieldProblem extends LintWarning {
  /** Whether the rule can never hold for any input. */
  readonly isMistake: boolean
}

/**
 * Finds fields that no tool of a rule declares: `has(input.ammount) && …` would silently disable the rule. Leaves out rules
 * whose tools are not listed yet, and fields that a schema leaves open.
 */
export function findFieldProblems(
  uses: readonly FieldUse[],
  snapshot: Toolset,
  unlisted: readonly Source[] = [],
): readonly FieldProblem[] {
  return uses.flatMap(({ path, label, selectors, trees }) => {
    if (selectors.some((selector) => mayStillCome(selector, unlisted))) return []
    const reads = new Map(trees.flatMap(fieldReadsOf).map((read) => [`${read.text} ${read.wants}`, read]))
    const found = [...reads.values()].flatMap((read) => {
      const problem = problemOf(read, label, selectors, snapshot)
      return problem ? [{ read, problem }] : []
    })
    // A field that is read twice, or whose parts are read, is reported once.
    const first = found.filter(({ read }) => !found.some((other) => isWithin(read, other.read)))
    const problems = first.map(({ problem }) => [`${problem.code} ${problem.text}`, { path, ...problem }] as const)
    return [...new Map(problems).values()]
  })
}

function isWithin(read: FieldRead, whole: FieldRead): boolean {
  return (
    read.of === whole.of && read.path.length > whole.path.length && whole.path.every((step, i) => step === read.path[i])
  )
}

/** For each field, a tool that has it. While the tool exists, no search is needed. */
const witnesses = new WeakMap<FieldRead, Tool>()

function problemOf(
  read: FieldRead,
  label: string,
  selectors: readonly Selector[],
  snapshot: Toolset,
): Omit<FieldProblem, 'path'> | undefined {
  const witness = witnesses.get(read)
  if (witness && snapshot.tools[snapshot.indexOf(witness.id)] === witness) return undefined
  const names = new Set<string>()
  const found: { readonly tool: Tool; readonly field: Field }[] = []
  for (const tool of snapshot.tools) {
    if (!selectors.some((selector) => matchesSelector(selector, tool, 'possible'))) continue
    const field = fieldOf(tool, read, names)
    const isOdd = field.state === 'declared' && read.wants !== undefined && !field.types.has(read.wants)
    if (field.state === 'unknown' || (field.state === 'declared' && !isOdd)) return void witnesses.set(read, tool)
    found.push({ tool, field })
  }
  if (found.length === 0) return undefined
  const tools = found.map(({ tool }) => tool.id)
  const isMistake = found.every(({ field }) => field.state !== 'undeclared')
  const first = found.find(({ field }) => field.state === 'declared')
  if (first)
    return {
      code: 'field_type',
      text: `${read.text} is compared with a ${read.wants}, and is of type ${[...first.field.types].join(' or ')} in every tool of ${label}`,
      tools,
      isMistake,
    }
  const near = didYouMean(String(read.path.at(-1)), names)
  return {
    code: 'field_unknown',
    text: `it reads ${read.text}, which no tool of ${label} has${near}`,
    tools,
    isMistake,
  }
}

function fieldOf(tool: Tool, { of, path, isMember }: FieldRead, names: Set<string>): Field {
  const list = isMember && fieldIn(tool, of, path.slice(0, -1))
  // The value may be a list that contains the text.
  if (list && path.length > 1 && list.state !== 'never' && list.types.has('array')) return { ...list, state: 'unknown' }
  return fieldIn(tool, of, path, names)
}

function fieldIn({ inputSchema, outputSchema }: Tool, of: string, path: readonly Step[], names?: Set<string>): Field {
  return findField((of === 'output' ? outputSchema : inputSchema) ?? {}, path, names)
}

/** Returns whether a schema lists fields but not this one, such as `input.order.id`. `never`: and also allows no others. */
export function lacksField(tool: Tool, field: string, how: 'listed' | 'never' = 'listed'): boolean {
  const [of = '', ...path] = field.split('.')
  const { state } = fieldIn(tool, of, path)
  return state === 'never' || (how === 'listed' && state === 'undeclared')
}

/** Returns a warning for each addressee of a tool that is not a field of its input. */
function findWrongAddressees(snapshot: Toolset): readonly LintWarning[] {
  return snapshot.tools.flatMap((tool) =>
    tool.addressees
      .filter((name) => lacksField(tool, `input.${name}`))
      .map((name): LintWarning => ({
        code: 'field_unknown',
        path: `tools.${tool.id}.addressees`,
        text: `its input has no field "${name}"`,
        tools: [tool.id],
      })),
  )
}

/** Returns a warning for each field that a rule or an addressee names and no tool has. */
export function lintFields(
  uses: readonly FieldUse[],
  snapshot: Toolset,
  unlisted: readonly Source[] = [],
): readonly LintWarning[] {
  const problems = findFieldProblems(uses, snapshot, unlisted).map(({ isMistake: _, ...warning }) => warning)
  return [...problems, ...findWrongAddressees(snapshot)]
}
