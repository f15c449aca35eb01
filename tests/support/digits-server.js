// An MCP server on stdio, of the revision 2025-11-25, that reads no number: its tool `echo` sends back the digits of the
// argument `n` as they came, in its structured content and as text. Its tool `ask` asks for `n`. Its tool `long` runs as a
// task.
import { createInterface } from 'node:readline'

const SCHEMA =
  '{"type":"object","properties":{"n":{"type":"integer","maximum":9223372036854775807}},"required":["n"],"additionalProperties":false}'
const OUTPUT = '{"type":"object","properties":{"n":{"type":"integer"}}}'
const MORE =
  '{"name":"ask","inputSchema":{"type":"object"}},{"name":"long","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}'
const INFO =
  '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"digits","version":"1"}}'

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
    return `{"tools":[{"name":"echo","inputSchema":${SCHEMA},"outputSchema":${OUTPUT}},{"name":"pay","inputSchema":${SCHEMA}},${MORE}]}`
  if (method !== 'tools/call') return undefined
  const digits = /"arguments":\{"n":([^}]*)\}/.exec(text)?.[1] ?? 'null'
  return `{"content":[{"type":"text","text":"got ${digits}"}],"structuredContent":{"n":${digits}}}`
}

const ASK =
  '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"n?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}}'
let waiting
let kept = 'null'

/** Answers messages that depend on earlier ones. */
function answerWithState(text) {
  const { id, method, params } = JSON.parse(text)
  const write = (of, result) => `{"jsonrpc":"2.0","id":${JSON.stringify(of)},"result":${result}}`
  const digits = /"n":([^},]*)/.exec(text)?.[1] ?? 'null'
  const echo = (n) => `{"content":[{"type":"text","text":"got ${n}"}],"structuredContent":{"n":${n}}}`
  if (id === 'q') return write(waiting, echo(digits))
  if (params?.name === 'ask') {
    waiting = id
    return ASK
  }
  const task =
    '"taskId":"t","status":"completed","ttl":null,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"'
  if (params?.name === 'long') {
    kept = digits
    return write(id, params.task ? `{"task":{${task}}}` : echo(digits))
  }
  if (method === 'tasks/get') return write(id, `{${task}}`)
  if (method === 'tasks/result') return write(id, echo(kept))
  return answerTo(text)
}

if (process.argv[1] === import.meta.filename)
  for await (const line of createInterface({ input: process.stdin })) {
    const answer = answerWithState(line)
    if (answer !== undefined) process.stdout.write(`${answer}\n`)
  }
