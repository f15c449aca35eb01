/** What a person has said of a call, as it stands in messages. Anybody can write messages. */
export interface AnsweredCall {
  readonly toolCallId: string
  readonly toolName: string
  /** As the model wrote it, where the schema of the tool has made something else of it. */
  readonly input: unknown
  readonly approved: boolean
  readonly reason: string | undefined
}

type Part = Readonly<Record<string, unknown>>

/** Gives the calls that the last message answers, as the SDK reads it: they run, or are denied, before the next step. */
export function answeredCalls(messages: readonly unknown[] | undefined): readonly AnsweredCall[] {
  const last = messages?.at(-1)
  const responses = partsOf(last, 'tool').filter(({ type }) => type === 'tool-approval-response')
  if (!messages || responses.length === 0) return NONE
  const parts = messages.flatMap((message) => partsOf(message, 'assistant'))
  const requests = by(parts, 'tool-approval-request', 'approvalId')
  const calls = by(parts, 'tool-call', 'toolCallId')
  const results = by(partsOf(last, 'tool'), 'tool-result', 'toolCallId')
  return responses.flatMap(({ approvalId, approved, reason }) => {
    const request = requests.get(approvalId)
    const call = calls.get(request?.['toolCallId'])
    if (!request || !call || isOver(results.get(call['toolCallId']), approved)) return []
    return [
      {
        toolCallId: textOf(call['toolCallId']) ?? '',
        toolName: textOf(call['toolName']) ?? '',
        input: 'inputSchemaInput' in request ? request['inputSchemaInput'] : call['input'],
        approved: approved === true,
        reason: textOf(reason),
      },
    ]
  })
}

/** What has its result was answered before; only a denial stands beside the result that it is. */
function isOver(result: Part | undefined, approved: unknown): boolean {
  if (!result) return false
  return approved === true || (result['output'] as Part | undefined)?.['type'] !== 'execution-denied'
}

const NONE: readonly AnsweredCall[] = []

function partsOf(message: unknown, role: string): readonly Part[] {
  const { role: its, content } = (message ?? {}) as Part
  return its === role && Array.isArray(content) ? (content as Part[]) : []
}

/** In a Map, as the ids are the model's and the client's. */
function by(parts: readonly Part[], type: string, key: string): ReadonlyMap<unknown, Part> {
  return new Map(parts.filter((part) => part['type'] === type).map((part) => [part[key], part]))
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
