import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { loadConfig, startGateway } from '@toolgate/gateway'
import { freePort } from '../../../bench/server-process.ts'
import { ROOT } from '../packages.ts'
import { record } from './record.ts'

const KEY = 'shape-key-0123456789'

/** Records one `tools/call` through a gateway in this process, before a server in another. */
export async function recordGatewayCall(
  toRequest: (name: string) => { headers: Record<string, string>; body: string },
): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-shape-'))
  const port = await freePort()
  const env = { ...process.env, PORT: String(port), TOOLS: '5' }
  const upstream = spawn(process.execPath, [path.join(ROOT, 'bench/upstream.js')], { env, stdio: 'ignore' })
  const file = path.join(folder, 'toolgate.yaml')
  writeFileSync(file, toConfig(`http://127.0.0.1:${port}/mcp`, folder))
  const gateway = await startGateway(loadConfig(file), { log: () => {} })
  try {
    await gateway.ready
    const { headers, body } = toRequest('up__tool_0003')
    const call = async (): Promise<void> => {
      const answer = await fetch(`${gateway.url}/mcp`, {
        method: 'POST',
        headers: { ...headers, authorization: `Bearer ${KEY}` },
        body,
      })
      const text = await answer.text()
      if (!text.includes('read /workspace/a.txt')) throw new Error(`not the answer of the tool: ${text.slice(0, 300)}`)
      // What happens after the answer, such as the record of its end, belongs to the call.
      await delay(150)
    }
    await record(call)
  } finally {
    await gateway.close()
    await stop(upstream)
    rmSync(folder, { recursive: true, force: true })
  }
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill()
  await ended
}

function toConfig(upstream: string, folder: string): string {
  return `
listen: { port: 0 }
servers: { up: { url: "${upstream}", era: modern, trustHints: true } }
callers: [ { key: "${KEY}", user: vera, roles: [viewer] } ]
policy: [ { deny: [ { match: "*:*", input: "!within(input.path, '/workspace')" } ] } ]
limits: [ "*:1000000/60" ]
audit: { store: sqlite, path: "${path.join(folder, 'audit.db')}" }
`
}
