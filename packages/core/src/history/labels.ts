import { checkObject, ConfigError } from '@toolgate/values'
import { type GroupSelectors, matchesSelector, parseSelectorAt, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import { UNTRUSTED } from './facts.ts'

/**
 * The labels of tool outputs: `{ trusted: ['contacts:*'], private: ['crm:*'] }`. `trusted` is not a label: the output of
 * any tool that it does not match is `untrusted`.
 */
export type LabelsInput = Readonly<Record<string, readonly string[]>>

/** The labels of a tool's output, known before it is called. */
interface ToolLabels {
  readonly trusted: boolean
  /** What a call raises, sorted. */
  readonly raises: readonly string[]
}

export interface ParsedLabels {
  /** The labels that the operator names, and `untrusted`. */
  readonly names: readonly string[]
  /** Computed once for each tool. */
  of(tool: Tool): ToolLabels
  /** The selectors as they were written. */
  readonly written: readonly { readonly path: string; readonly selector: Selector }[]
}

const TRUSTED = 'trusted'
const MAX_LABELS = 64

/** Parses the labels. @throws {ConfigError} for an invalid name or selector */
export function parseLabels(input: LabelsInput | undefined, groups: GroupSelectors): ParsedLabels {
  const rows = input === undefined ? [] : readRows(input, groups)
  const known = new WeakMap<Tool, ToolLabels>()
  return {
    names: [...new Set([UNTRUSTED, ...rows.flatMap(({ label }) => (label === TRUSTED ? [] : [label]))])].toSorted(),
    written: rows.flatMap(({ written }) => written),
    of(tool) {
      let labels = known.get(tool)
      if (!labels) known.set(tool, (labels = labelsOf(tool, rows)))
      return labels
    },
  }
}

interface LabelRow {
  readonly label: string
  readonly written: ParsedLabels['written']
}

function readRows(input: LabelsInput, groups: GroupSelectors): readonly LabelRow[] {
  checkObject('labels', input)
  const entries = Object.entries(input)
  if (entries.length > MAX_LABELS) throw new ConfigError('labels', `names more than ${MAX_LABELS} labels`)
  return entries.map(([label, texts]) => {
    const path = `labels.${label}`
    if (label !== TRUSTED) checkLabel(path, label)
    if (!Array.isArray(texts)) throw new ConfigError(path, 'must be a list of selectors')
    // A tool that matches only by its own claim is not trusted. For other labels, possible matches count.
    const scope = label === TRUSTED ? 'items' : 'servers'
    const written = texts.map((text: unknown, i) => ({
      path: `${path}[${i}]`,
      selector: parseSelectorAt(`${path}[${i}]`, text, groups, scope),
    }))
    return { label, written }
  })
}

const LABEL = /^[a-z][a-z0-9_-]{0,63}$/

/** Checks a label. @throws {ConfigError} for an invalid one */
function checkLabel(path: string, label: string): void {
  if (label === TRUSTED) throw new ConfigError(path, '"trusted" is no label: a tool has `trusted: true`')
  if (!LABEL.test(label))
    throw new ConfigError(path, 'a label has at most 64 small letters, digits, _ and -, and begins with a letter')
}

function labelsOf(tool: Tool, rows: readonly LabelRow[]): ToolLabels {
  const named = (row: LabelRow, reading: 'certain' | 'possible') =>
    row.written.some(({ selector }) => matchesSelector(selector, tool, reading))
  const raised = new Set(tool.labels)
  for (const row of rows) if (row.label !== TRUSTED && named(row, 'possible')) raised.add(row.label)
  const isTrusted = tool.trusted || rows.some((row) => row.label === TRUSTED && named(row, 'certain'))
  if (!isTrusted) raised.add(UNTRUSTED)
  return { trusted: !raised.has(UNTRUSTED), raises: Object.freeze([...raised].toSorted()) }
}
