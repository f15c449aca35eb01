import { checkObject, ConfigError } from '@toolgate/values'
import { type GroupSelectors, matchesSelector, parseSelectorAt, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import { UNTRUSTED } from './facts.ts'

/**
 * Which tools give their output which labels: `{ trusted: ['contacts:*'], private: ['crm:*'] }`. `trusted` is no label: the
 * output of any other tool is `untrusted`.
 */
export type LabelsInput = Readonly<Record<string, readonly string[]>>

/** What is known of a tool's output before it is called. */
export interface ToolLabels {
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

/** @throws {ConfigError} for a name or a selector that cannot be used */
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

interface Row {
  readonly label: string
  readonly written: ParsedLabels['written']
}

function readRows(input: LabelsInput, groups: GroupSelectors): readonly Row[] {
  checkObject('labels', input)
  const entries = Object.entries(input)
  if (entries.length > MAX_LABELS) throw new ConfigError('labels', `names more than ${MAX_LABELS} labels`)
  return entries.map(([label, texts]) => {
    const path = `labels.${label}`
    if (label !== TRUSTED) checkLabel(path, label)
    if (!Array.isArray(texts)) throw new ConfigError(path, 'must be a list of selectors')
    // Whom a claim of its own names is not trusted for it, and everything that may be private is.
    const scope = label === TRUSTED ? 'items' : 'servers'
    const written = texts.map((text: unknown, i) => ({
      path: `${path}[${i}]`,
      selector: parseSelectorAt(`${path}[${i}]`, text, groups, scope),
    }))
    return { label, written }
  })
}

const LABEL = /^[a-z][a-z0-9_-]{0,63}$/

/** @throws {ConfigError} for a text that is no label */
export function checkLabel(path: string, label: string): void {
  if (label === TRUSTED) throw new ConfigError(path, '"trusted" is no label: a tool has `trusted: true`')
  if (!LABEL.test(label))
    throw new ConfigError(path, 'a label has at most 64 small letters, digits, _ and -, and begins with a letter')
}

function labelsOf(tool: Tool, rows: readonly Row[]): ToolLabels {
  const named = (row: Row, reading: 'certain' | 'possible') =>
    row.written.some(({ selector }) => matchesSelector(selector, tool, reading))
  const raised = new Set(tool.labels)
  for (const row of rows) if (row.label !== TRUSTED && named(row, 'possible')) raised.add(row.label)
  const isTrusted = tool.trusted || rows.some((row) => row.label === TRUSTED && named(row, 'certain'))
  if (!isTrusted) raised.add(UNTRUSTED)
  return { trusted: !raised.has(UNTRUSTED), raises: Object.freeze([...raised].toSorted()) }
}
