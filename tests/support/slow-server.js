// An MCP server on stdio with a tool that never answers, one that reports progress and answers when a file is there, one that does at once,
// and one that says much.
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'

const send = (/** @type {object} */ message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  switch (method) {
    case 'initialize': {
      const serverInfo = { name: 'slow', version: '1' }
      send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } })
      break
    }
    case 'tools/list':
      send({
        id,
        result: { tools: ['wait', 'until', 'echo', 'long'].map((name) => ({ name, inputSchema: { type: 'object' } })) },
      })
      break
    case 'tools/call':
      if (params.name === 'until') {
        const { progressToken } = params._meta ?? {}
        if (progressToken !== undefined)
          send({ method: 'notifications/progress', params: { progressToken, progress: 1 } })
        const timer = setInterval(() => {
          if (!existsSync(params.arguments.file)) return
          clearInterval(timer)
          send({ id, result: { content: [{ type: 'text', text: 'done after all' }] } })
        }, 10)
      }
      if (params.name === 'echo') send({ id, result: { content: [{ type: 'text', text: 'echo' }] } })
      if (params.name === 'long') send({ id, result: { content: [{ type: 'text', text: 'x'.repeat(5000) }] } })
      break
    default:
      if (id !== undefined) send({ id, result: {} })
  }
}
