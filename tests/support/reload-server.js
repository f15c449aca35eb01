// An MCP server on stdio: `pid` tells its process, `wait` answers when a file is there, `echo` answers at once, with its
// `word` if it got one, and `fail` fails with it.
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'

const send = (/** @type {object} */ message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const answer = (/** @type {unknown} */ id, /** @type {string} */ text) =>
  send({ id, result: { content: [{ type: 'text', text }] } })

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') {
    const serverInfo = { name: 'reloaded', version: '1' }
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } })
  } else if (method === 'tools/list') {
    const tools = ['echo', 'fail', 'pid', 'wait'].map((name) => ({ name, inputSchema: { type: 'object' } }))
    send({ id, result: { tools } })
  } else if (method === 'tools/call') {
    const { word = 'echo' } = params.arguments ?? {}
    if (params.name === 'echo') answer(id, word)
    if (params.name === 'fail') {
      process.stderr.write(`failed with ${word}\n`)
      send({ id, error: { code: -32000, message: `failed with ${word}` } })
    }
    if (params.name === 'pid') answer(id, String(process.pid))
    if (params.name === 'wait') {
      const timer = setInterval(() => {
        if (!existsSync(params.arguments.file)) return
        clearInterval(timer)
        answer(id, 'waited')
      }, 10)
    }
  } else if (id !== undefined) send({ id, result: {} })
}
