import { capOutput, catchRejection, sizeOf, withFewerItems } from '@toolgate/values'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { JsonSchema } from '../tools/tool.ts'
import type { CallPorts } from './attempt.ts'

interface CutOutput {
  readonly output: unknown
  readonly cut: boolean
}

/** The size of the note, and of the fields around it. */
const NOTE_CHARS = 500
/** The maximum number of shortened lists in the note. */
const MAX_NOTES = 3

/**
 * Returns an output of at most `maxOutputChars` characters. An MCP result of a tool with an output schema keeps a
 * structured content only if it still fits the schema, because clients reject any other result.
 */
export function cutOutput(
  output: unknown,
  outputSchema: JsonSchema | undefined,
  ports: Pick<CallPorts, 'maxOutputChars' | 'validate' | 'onFault'>,
): CutOutput {
  const capped = capOutput(output, ports.maxOutputChars)
  if (!capped.cut || outputSchema === undefined || !isStructured(output)) return capped
  return { output: cutResult(output, outputSchema, ports), cut: true }
}

interface StructuredResult extends JsonObject {
  readonly content: readonly unknown[]
  readonly structuredContent: unknown
}

function isStructured(output: unknown): output is StructuredResult {
  return isObject(output) && Array.isArray(output['content']) && output['structuredContent'] !== undefined
}

/** Content and structured content get half of the space each, or what the other one leaves. */
function cutResult(
  { content, structuredContent, ...rest }: StructuredResult,
  schema: JsonSchema,
  ports: Parameters<typeof cutOutput>[2],
): unknown {
  const { maxOutputChars: max } = ports
  const room = max - NOTE_CHARS - sizeOf(rest, max)
  const shown = Math.min(sizeOf(content, room), Math.floor(room / 2))
  const fewer = withFewerItems(structuredContent, room - shown)
  const isKept = fewer !== undefined && isValid(schema, fewer.value, ports)
  const left = isKept ? room - sizeOf(fewer.value, room) : room
  const text = isKept ? fewer.cut.slice(0, MAX_NOTES).map(noteOf).join(' ') : leftOut(max)
  const blocks = sizeOf(content, left) <= left ? content : capOutput(content, Math.max(0, left)).output
  const result = {
    ...rest,
    content: [...(Array.isArray(blocks) ? blocks : []), ...(text === '' ? [] : [{ type: 'text', text }])],
    // Clients accept a result without structured content only as an error.
    ...(isKept ? { structuredContent: fewer.value } : { isError: true }),
  }
  return sizeOf(result, max) <= max ? result : { content: [{ type: 'text', text: leftOut(max) }], isError: true }
}

function noteOf({ path, kept, of }: { readonly path: string; readonly kept: number; readonly of: number }): string {
  const list = path === '' ? 'the structured content' : `"${path.slice(0, 100)}"`
  return `[cut: ${list} has the first ${kept} of ${of} items]`
}

function leftOut(max: number): string {
  return `[cut: the tool ran. Its structured content is left out, as a result has at most ${max} characters]`
}

function isValid(schema: JsonSchema, value: unknown, ports: Parameters<typeof cutOutput>[2]): boolean {
  try {
    const problem: unknown = ports.validate(schema, value)
    if (problem === undefined) return true
    catchRejection(problem, ports.onFault)
    return false
  } catch (error) {
    ports.onFault(error)
    return false
  }
}
