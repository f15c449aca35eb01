// A server of 2025-11-25 on stdio, on the SDK of earlier revisions. It asks its client during a call.
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'

const log = (line: string) => appendFileSync(process.argv[2] ?? '/dev/null', `${line}\n`)
const server = new McpServer({ name: 'asking', version: '1' })

server.registerTool(
  'greet',
  { description: 'Asks for a name as often as it is told.', inputSchema: { times: z.number() } },
  async ({ times }, extra) => {
    log(`start ${times}`)
    extra.signal.addEventListener('abort', () => log(`cancelled ${times}`))
    const names: unknown[] = []
    const progressToken = extra._meta?.progressToken
    for (let i = 1; i <= times; i++) {
      const requestedSchema = { type: 'object' as const, properties: { name: { type: 'string' as const } } }
      const { content } = await server.server.elicitInput(
        { message: `Name ${i}?`, requestedSchema },
        { signal: extra.signal, timeout: 60_000 },
      )
      names.push(content?.['name'])
      if (progressToken !== undefined)
        await extra.sendNotification({
          method: 'notifications/progress',
          params: { progressToken, progress: i, total: times },
        })
      await sleep(20)
    }
    log(`end ${times}`)
    return { content: [{ type: 'text', text: `Hello ${names.join(' and ')}.` }] }
  },
)

await server.connect(new StdioServerTransport())
