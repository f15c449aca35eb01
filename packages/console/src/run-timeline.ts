import type { AuditRecord } from './wire.ts'

/** One call of a run, with its effect on the run. */
export interface RunStep {
  readonly record: AuditRecord
  /** The labels that this call added to the run. */
  readonly raised: readonly string[]
  /** All labels of the run after this call. */
  readonly labels: readonly string[]
  /** The facts that counted against the call, in words. */
  readonly because: readonly string[]
}

/**
 * Returns the steps of a run from its records, oldest first: each attempt once, by its end, and the run's own start and
 * end. Labels are never removed. A label that a sub-agent raised appears when a rule next reads it.
 */
export function toRunSteps(records: readonly AuditRecord[]): readonly RunStep[] {
  const ended = new Set(records.flatMap(({ event, tool_call_id: id }) => (event === 'tool_call' ? [] : (id ?? []))))
  const labels = new Set<string>()
  return records
    .toSorted((a, b) => a.seq - b.seq)
    .filter(({ event, tool_call_id: id }) => event !== 'tool_call' || !ended.has(id ?? ''))
    .map((record) => {
      const raised = [...wordsOf(record.run_labels), ...wordsOf(record.labels)].filter((label) => !labels.has(label))
      for (const label of raised) labels.add(label)
      return { record, raised: [...new Set(raised)], labels: [...labels].toSorted(), because: becauseOf(record) }
    })
}

function wordsOf(text = ''): readonly string[] {
  return text.split(' ').filter(Boolean)
}

interface Operand {
  readonly kind: string
  readonly of: string
  readonly origin?: string
  readonly values?: readonly { readonly field?: string; readonly value: string; readonly origin: string }[]
  readonly wanted?: Readonly<Record<string, string>>
  readonly calls?: readonly { readonly tool: string }[]
}

function becauseOf({ operands, event }: AuditRecord): readonly string[] {
  if (operands === undefined || event === 'tool_result') return []
  try {
    return (JSON.parse(operands) as readonly Operand[]).map(toWords)
  } catch {
    return []
  }
}

function toWords({ kind, of, origin, values = [], wanted = {}, calls = [] }: Operand): string {
  const by = calls.length === 0 ? '' : `, by ${calls.map(({ tool }) => tool).join(', ')}`
  const equal = Object.entries(wanted).map(([field, value]) => `${field} = ${value}`)
  const same = equal.length === 0 ? '' : ` with ${equal.join(', ')}`
  switch (kind) {
    case 'label':
      return `the run is ${of}${by}`
    case 'called':
      return `no call of ${of}${same} was done`
    case 'began':
      return `${of} has begun before${same}`
    default:
      return values.length === 0
        ? `${of} is ${origin}`
        : values.map(({ field = of, value, origin: from }) => `${field} ${value} is ${from}`).join(', ')
  }
}
