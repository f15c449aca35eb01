// An MCP server on stdio, of the revision 2025-11-25, that reads no number: its tool `echo` sends back the digits of the
// argument `n` as they came, in its structured content and as text.
import { createInterface } from 'node:readline'

const SCHEMA =
  '{"type":"object","properties":{"n":{"type":"integer","maximum":9223372036854775807}},"required":["n"],"additionalProperties":false}'
const OUTPUT = '{"type":"object","properties":{"n":{"type":"integer"}}}'
const INFO = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"digits","version":"1"}}'

/** Returns the text of the answer to a message; `undefined` for a notification. */
export function answerTo(text) {
  const { id, method } = JSON.parse(text)
  if (id === undefined) return undefined
  const result = resultOf(method, text)
  if (result !== undefined) return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"Method not found"}}`
}

function resultOf(method, text) {
  if (method === 'initialize') return INFO
  if (method === 'tools/list')
    return `{"tools":[{"name":"echo","inputSchema":${SCHEMA},"outputSchema":${OUTPUT}},{"name":"pay","inputSchema":${SCHEMA}}]}`
  if (method !== 'tools/call') return undefined
  const digits = /"arguments":\{"n":([^}]*)\}/.exec(text)?.[1] ?? 'null'
  return `{"content":[{"type":"text","text":"got ${digits}"}],"structuredContent":{"n":${digits}}}`
}

if (process.argv[1] === import.meta.filename)
  for await (const line of createInterface({ input: process.stdin })) {
    const answer = answerTo(line)
    if (answer !== undefined) process.stdout.write(`${answer}\n`)
  }
