import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { GatewayConfig } from '@toolgate/gateway'
import { commandsToTry, renderWelcome, type Welcome } from './try.ts'

const WELCOME: Welcome = {
  url: 'http://127.0.0.1:9000',
  config: {} as GatewayConfig,
  seen: [
    { user: 'viewer', key: 'demo-viewer', for: 'mcp', tools: ['files:read', 'memory:read'] },
    { user: 'operator', key: 'demo-operator', for: 'mcp', tools: ['files:read', 'files:write', 'memory:read'] },
    { user: 'guest', key: 'demo-guest', for: 'mcp', tools: ['memory:read'] },
    { user: 'owner', key: 'demo-console', for: 'console', tools: [] },
  ],
  servers: [
    { name: 'files', status: 'ready', since: 0, restarts: 0, toolCount: 2, rejected: [] },
    { name: 'memory', status: 'down', reason: 'exited', since: 0, restarts: 0, toolCount: 0, rejected: [] },
  ],
  groups: [
    { name: 'lab', visibility: 'conditional', available: false, reason: 'closed', suggestion: 'Open it.', tools: [] },
  ],
  paint: (_style, text) => text,
  columns: 100,
}

describe('renderWelcome', () => {
  const text = renderWelcome(WELCOME)

  it('names the two addresses and the key of the console', () => {
    assert.match(
      text,
      /MCP {6}http:\/\/127\.0\.0\.1:9000\/mcp\n {2}Console {2}http:\/\/127\.0\.0\.1:9000\/ {3}key: demo-console/,
    )
  })

  it('prints what each key sees: counts per server, and the names in addition to the key before', () => {
    assert.ok(
      text.includes(`  demo-viewer  2 tools (files 1, memory 1)
    files: read
    memory: read
  demo-operator  3 tools (files 2, memory 1), those of demo-viewer and
    files: write
  demo-guest  1 tool (memory 1)
    memory: read
`),
    )
  })

  it('prints the status of each server, and what unavailable groups wait for', () => {
    assert.match(
      text,
      /files {2}ready {2}2 tools\n {2}memory {2}down {2}exited\n {2}group lab is unavailable: closed\. Open it\./,
    )
  })

  it('has a client configuration to paste that is JSON, for both forms', () => {
    const blocks = [...text.matchAll(/^ {2}\{\n[\s\S]*?^ {2}\}$/gm)].map(([block]) => JSON.parse(block) as object)
    const toolgate = {
      type: 'http',
      url: 'http://127.0.0.1:9000/mcp',
      headers: { Authorization: 'Bearer demo-viewer' },
    }
    assert.deepEqual(blocks, [{ mcpServers: { toolgate } }, { servers: { toolgate } }])
  })

  it('names the address in the commands only if it is not the default', () => {
    assert.ok(commandsToTry('http://127.0.0.1:9000', 'k')[1]?.endsWith('--url http://127.0.0.1:9000'))
    assert.ok(commandsToTry('http://127.0.0.1:8787', 'k')[1]?.endsWith('--as viewer'))
  })
})
