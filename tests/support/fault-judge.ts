import type { AuditFinding, AuditRecord } from '@toolgate/core/audit'
import { createOpenCalls } from '../../packages/stores/src/own-records.ts'

/** One call that the server of the tools was sent. Each call of the traffic has a number of its own. */
export interface Executed {
  readonly tool: string
  readonly n: number
}

/** What is known when everything has stopped. */
export interface Evidence {
  readonly executed: readonly Executed[]
  readonly records: readonly AuditRecord[]
  /** Calls whose clients were told that they ran. */
  readonly acknowledged: readonly number[]
  /** How often each call was approved that needs it; also where the answer to the approval never came. */
  readonly approved: ReadonlyMap<number, number>
  /** Calls that were sent after the answer to a halt of their tool, and answered before anyone asked for its release. */
  readonly halted: readonly number[]
  /** How often each tool may run. */
  readonly limits: ReadonlyMap<string, number>
  /** What verifying the audit has found. */
  readonly findings: readonly AuditFinding[]
}

/** A promise that was broken, and by what. */
export interface Violation {
  readonly promise: string
  readonly by: readonly string[]
}

/** Returns the promises that the evidence breaks. */
export function judge(evidence: Evidence): readonly Violation[] {
  return PROMISES.map(({ promise, broken }) => ({ promise, by: broken(evidence) })).filter(({ by }) => by.length > 0)
}

interface Promised {
  readonly promise: string
  readonly broken: (evidence: Evidence) => readonly string[]
}

const PROMISES: readonly Promised[] = [
  {
    promise: 'nothing is executed without a durable intent',
    broken: ({ executed, records }) => {
      const intents = countOf(previewsOf(records, 'tool_call'))
      const runs = countOf(executed.map(inputOf))
      return [...runs].filter(([input, times]) => times > (intents.get(input) ?? 0)).map(([input]) => input)
    },
  },
  {
    promise: 'no acknowledged call is lost: it was executed, and its result is on record',
    broken: ({ executed, records, acknowledged }) => {
      const ran = new Set(executed.map(inputOf))
      const results = new Set(resultsOf(records))
      return acknowledged.map((n) => inputOf({ n })).filter((input) => !ran.has(input) || !results.has(input))
    },
  },
  {
    promise: 'each intent has one end',
    broken({ records }) {
      const open = createOpenCalls<AuditRecord>()
      for (const record of records) open.note(record)
      return open.list().map(({ input_preview: input }) => input ?? 'a call')
    },
  },
  {
    promise: 'a call is executed at most once, and one that needs an approval at most as often as it was approved',
    broken: ({ executed, approved }) =>
      [...countOf(executed.map(({ n, tool }) => JSON.stringify({ n, tool })))]
        .filter(([call, times]) => {
          const { n, tool } = JSON.parse(call) as Executed
          return times > (tool === 'pay' ? (approved.get(n) ?? 0) : 1)
        })
        .map(([call, times]) => `${call}: ${times} times`),
  },
  {
    promise: 'no limit is exceeded',
    broken: ({ executed, limits }) =>
      [...countOf(executed.map(({ tool }) => tool))]
        .filter(([tool, times]) => times > (limits.get(tool) ?? Number.POSITIVE_INFINITY))
        .map(([tool, times]) => `${tool}: ${times} times`),
  },
  {
    promise: 'what was halted when a call came is not executed',
    broken({ executed, halted }) {
      const ran = new Set(executed.map(({ n }) => n))
      return halted.filter((n) => ran.has(n)).map(String)
    },
  },
  {
    promise: 'the audit verifies',
    broken: ({ findings }) => findings.map(({ kind, text }) => `${kind}: ${text}`),
  },
]

/** Returns the input as the preview of a record has it. */
function inputOf({ n }: { readonly n: number }): string {
  return JSON.stringify({ n })
}

function previewsOf(records: readonly AuditRecord[], event: AuditRecord['event']): readonly string[] {
  return records.flatMap((record) => (record.event === event ? [record.input_preview ?? ''] : []))
}

/** Returns the inputs of the calls that have a result. */
function resultsOf(records: readonly AuditRecord[]): readonly string[] {
  const ended = new Set(records.flatMap(({ event, tool_call_id: id }) => (event === 'tool_result' ? [id] : [])))
  return previewsOf(
    records.filter(({ tool_call_id: id }) => ended.has(id)),
    'tool_call',
  )
}

function countOf(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}
