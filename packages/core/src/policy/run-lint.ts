import { UNTRUSTED } from '../history/facts.ts'
import { matchesSelector, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { didYouMean, nearestOf } from '@toolgate/values'
import { type FieldProblem, lacksField } from './field-lint.ts'
import type { LintWarning } from './lint.ts'
import { CLAUSE_KINDS, type ParsedClause, type ParsedPolicy } from './parse.ts'

/** The labels of a gate: all of them, and those of a tool's output. */
export interface KnownLabels {
  readonly names: readonly string[]
  of(tool: Tool): { readonly trusted: boolean }
}

/** Returns what is probably wrong with the rules about runs. */
export function lintRuns(
  policies: readonly ParsedPolicy[],
  snapshot: Toolset,
  labels: KnownLabels,
): readonly LintWarning[] {
  const clauses = clausesAbout(policies)
  if (clauses.length === 0) return []
  return [
    ...findUnknownLabels(policies, snapshot, labels),
    ...findCallFields(policies, snapshot).map(({ isMistake: _, ...warning }) => warning),
    ...clauses.flatMap(({ path, clause }) => [...lintTrust(path, clause, snapshot, labels)]),
    ...lintAddressees(clauses, snapshot),
    ...lintMemory(clauses, snapshot, labels),
  ]
}

interface PlacedClause {
  readonly path: string
  readonly clause: ParsedClause
}

function clausesAbout(policies: readonly ParsedPolicy[]): readonly PlacedClause[] {
  return policies.flatMap((policy, p) =>
    CLAUSE_KINDS.flatMap((kind) =>
      (policy[kind] ?? []).flatMap((clause) =>
        clause.run ? [{ path: `policy[${p}].${kind}[${clause.index}]`, clause }] : [],
      ),
    ),
  )
}

/** A label that no output has: the rule never holds, or always holds. */
interface UnknownLabel extends LintWarning {
  /** Whether the label is similar to a known one, and so certainly a mistake. */
  readonly isMistake: boolean
}

export function findUnknownLabels(
  policies: readonly ParsedPolicy[],
  snapshot: Toolset,
  { names }: Pick<KnownLabels, 'names'>,
): readonly UnknownLabel[] {
  const known = new Set([UNTRUSTED, ...names, ...snapshot.tools.flatMap((tool) => tool.labels)])
  return clausesAbout(policies).flatMap(({ path, clause }) =>
    (clause.run?.labels ?? [])
      .filter((label) => !known.has(label))
      .map((label) => ({
        code: 'label_unknown' as const,
        path,
        text: `no output has the label "${label}"${didYouMean(label, known)}`,
        isMistake: nearestOf(label, known) !== undefined,
      })),
  )
}

function toolsOf(selector: Selector, snapshot: Toolset): readonly Tool[] {
  return snapshot.tools.filter((tool) => matchesSelector(selector, tool, 'possible'))
}

/** Finds the fields of earlier calls that none of the tools has, so that no call can match. */
export function findCallFields(policies: readonly ParsedPolicy[], snapshot: Toolset): readonly FieldProblem[] {
  return clausesAbout(policies).flatMap(({ path, clause: { run } }) =>
    (run?.patterns ?? []).flatMap(({ event, selector, fields }) => {
      const tools = toolsOf(selector, snapshot)
      return fields
        .filter((field) => tools.length > 0 && tools.every((tool) => lacksField(tool, field)))
        .map((field) => ({
          ...toWarning(path, `run.${event}('${selector.text}') asks for ${field}, which no such tool has`, tools),
          isMistake: tools.every((tool) => lacksField(tool, field, 'never')),
        }))
    }),
  )
}

function toWarning(path: string, text: string, tools: readonly Tool[]): LintWarning {
  return { code: 'field_unknown', path, text, tools: tools.map(({ id }) => id) }
}

/** A result that others can write proves nothing: a web page could contain `ok`. */
function lintTrust(
  path: string,
  { run }: ParsedClause,
  snapshot: Toolset,
  labels: KnownLabels,
): readonly LintWarning[] {
  return (run?.patterns ?? []).flatMap(({ event, selector, fields }): readonly LintWarning[] => {
    if (event !== 'called' || !fields.some((field) => field.startsWith('output.'))) return []
    const tools = toolsOf(selector, snapshot).filter((tool) => !labels.of(tool).trusted)
    if (tools.length === 0) return []
    const text = `run.called('${selector.text}') believes the output of tools that are not trusted; name them in labels.trusted if only you can write what they return`
    return [{ code: 'prerequisite_untrusted', path, text, tools: tools.map(({ id }) => id) }]
  })
}

/** The addressees of a tool are `untrusted` if nobody has named its addressee fields. */
function lintAddressees(clauses: readonly PlacedClause[], snapshot: Toolset): readonly LintWarning[] {
  const asking = clauses.filter(({ clause }) => clause.run?.readsAddressees)
  if (asking.length === 0) return []
  const asked = snapshot.tools.filter(
    (tool) =>
      tool.tags.includes('egress') ||
      asking.some(({ clause }) => clause.selectors.some((selector) => matchesSelector(selector, tool, 'possible'))),
  )
  const missing = asked.filter(({ addressees }) => addressees.length === 0).map(({ id }) => id)
  if (missing.length === 0) return []
  const text =
    'these tools send something, and nobody has named the fields that say where: each call counts as untrusted'
  return [{ code: 'addressees_missing', path: asking[0]?.path ?? 'policy', text, tools: missing }]
}

/** Data that a tainted run writes would look clean when a trusted tool of the same server reads it back. */
function lintMemory(clauses: readonly PlacedClause[], snapshot: Toolset, labels: KnownLabels): readonly LintWarning[] {
  if (!clauses.some(({ clause }) => clause.run?.labels.includes(UNTRUSTED) || clause.run?.readsOrigin)) return []
  const spaces = Map.groupBy(snapshot.tools, ({ namespace }) => namespace)
  return [...spaces.values()].flatMap((tools): readonly LintWarning[] => {
    const writing = tools.filter(({ annotations }) => annotations.readOnlyHint !== true)
    const trusted = tools.filter((tool) => tool.annotations.readOnlyHint === true && labels.of(tool).trusted)
    if (writing.length === 0 || trusted.length === 0) return []
    const text = `${trusted[0]?.id} is trusted, and returns what ${writing[0]?.id} may have written after the run had read something untrusted`
    return [
      { code: 'memory_trusted', path: 'labels.trusted', text, tools: [...trusted, ...writing].map(({ id }) => id) },
    ]
  })
}
