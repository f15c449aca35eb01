/** A guarded server of SDK v1 or v2 on stdio, as its first argument says: one caller, named by the second. */
import { StdioServerTransport as StdioV1 } from '@modelcontextprotocol/sdk/server/stdio.js'
import { Server as ServerV1 } from '@modelcontextprotocol/sdk/server/index.js'
import { Server as ServerV2 } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { guard } from '@toolgate/adapters/mcp'
import { createGate, defineTool, type Gate } from '@toolgate/core'

const [, , sdk, role = 'viewer'] = process.argv
const INFO = { name: 'guarded', version: '1' }
const NUMBER = { type: 'number' }
const gate: Gate = createGate({
  tools: [
    defineTool({
      name: 'add',
      inputSchema: { type: 'object', properties: { a: NUMBER, b: NUMBER }, required: ['a', 'b'] },
      outputSchema: { type: 'object', properties: { sum: NUMBER }, required: ['sum'] },
      execute: ({ a, b }: { a: number; b: number }) => ({ sum: a + b }),
    }),
    defineTool({ name: 'delete_all', execute: () => 'deleted' }),
    defineTool({
      name: 'tighten',
      execute: () => gate.setPolicy({ deny: ['delete_all'] }),
    }),
  ],
  policy: { deny: [{ match: 'delete_all', unless: "'admin' in caller.roles" }] },
})
const caller = { user: role, roles: [role] }

if (sdk === 'v1') {
  const serve = guard(gate, { server: () => new ServerV1(INFO), caller, watchEveryMs: 20 })
  await serve().connect(new StdioV1())
} else {
  serveStdio(guard(gate, { server: () => new ServerV2(INFO), caller, watchEveryMs: 20 }))
}
