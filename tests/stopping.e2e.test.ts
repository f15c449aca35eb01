import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import type { AuditRecord } from '@toolgate/core'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { startTestGateway, tempFolder, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { ERAS, type Era, MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'
import { nodeServer } from './support/servers.ts'

const SLOW = join(import.meta.dirname, 'support/slow-server.js')
const BIN = join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
const STOPPED = 'slow__wait failed: the gate was closed'

describe('a gateway that stops while calls run', () => {
  it('answers them, and each leaves one record that says why it ended', async () => {
    const folder = tempFolder()
    const file = join(folder.path, 'audit.db')
    const gateway = await startTestGateway({
      servers: [nodeServer('slow', [SLOW])],
      audit: { store: 'sqlite', path: file, mode: 'batched' },
    })
    try {
      const calls = ERAS.map((era) => gateway.call('viewer', era, 'slow__wait'))
      await until(async () => (await started(gateway)).length === ERAS.length)
      await gateway.close()
      for (const answer of await Promise.all(calls)) {
        assert.deepEqual([answer.result?.isError, textOf(answer)], [true, STOPPED])
      }
      const records = await readAudit(file)
      const begins = records.filter(({ event }) => event === 'tool_call')
      const ends = records.filter(({ event, tool_call_id }) => tool_call_id !== undefined && event !== 'tool_call')
      assert.deepEqual(
        ends.map(({ event, reason, error }) => [event, reason, error]),
        ERAS.map(() => ['tool_abandoned', 'gate_closed', 'the gate was closed']),
      )
      assert.deepEqual(idsOf(ends), idsOf(begins))
    } finally {
      await gateway.close()
      folder.remove()
    }
  })

  it('lets what ends soon end by itself', async () => {
    const gateway = await startTestGateway({ servers: [nodeServer('slow', [SLOW])] })
    const answer = gateway.call('viewer', MODERN, 'slow__echo')
    await until(async () => (await started(gateway)).length === 1)
    await gateway.close()
    assert.equal(textOf(await answer), 'echo')
  })

  it('does so on SIGTERM, and its audit verifies', async () => {
    const folder = tempFolder()
    const yaml = `
listen: { port: 0 }
servers: { slow: { command: ${process.execPath}, args: [${SLOW}] } }
callers: [{ key: demo-viewer, user: viewer }]
policy: [{ allow: ['*'] }]
state: { store: memory }
audit: { store: sqlite, path: ${join(folder.path, 'audit.db')} }
`
    const config = join(folder.path, 'toolgate.yaml')
    writeFileSync(config, yaml)
    const { PORT: _, ...env } = process.env
    const child = run(['serve', '--config', config], env)
    try {
      const lines = createInterface({ input: child.stdout })
      const [ready] = (await once(lines, 'line')) as [string]
      const url = /http:\/\/\S+\/mcp/.exec(ready)?.[0] ?? ''
      const asked = ask(url, MODERN, 'slow__wait')
      await until(() => readAudit(join(folder.path, 'audit.db')).then((found) => found.some(isCall)))
      child.kill('SIGTERM')
      const [exit] = (await once(child, 'exit')) as [number]
      assert.deepEqual([exit, textOf(await asked)], [0, STOPPED])
      const records = await readAudit(join(folder.path, 'audit.db'))
      assert.deepEqual(
        records.filter(({ tool }) => tool === 'slow:wait').map(({ event, reason }) => [event, reason]),
        [
          ['tool_abandoned', 'gate_closed'],
          ['tool_call', undefined],
        ],
      )
      const verifying = run(['audit', 'verify', '--config', config], env)
      assert.deepEqual(await once(verifying, 'exit'), [0, null])
    } finally {
      child.kill('SIGKILL')
      folder.remove()
    }
  })
})

function run(args: readonly string[], env: NodeJS.ProcessEnv) {
  const given = ['--conditions=toolgate-source', BIN, ...args]
  return spawn(process.execPath, given, { stdio: ['ignore', 'pipe', 'ignore'], env: { ...env, NO_COLOR: '1' } })
}

async function ask(url: string, era: Era, name: string): Promise<RpcAnswer> {
  const { headers, body } = toMessage(era, 'tools/call', { name, arguments: {} })
  const answer = await send(url, {
    headers: { ...headers, authorization: 'Bearer demo-viewer' },
    body: JSON.stringify(body),
  })
  return answer.json() as RpcAnswer
}

async function started(gateway: { api(path: string): Promise<{ body: unknown }> }): Promise<readonly AuditRecord[]> {
  const { body } = await gateway.api('/api/audit?event=tool_call')
  return (body as { records: readonly AuditRecord[] }).records
}

const isCall = ({ event }: AuditRecord) => event === 'tool_call'
const idsOf = (records: readonly AuditRecord[]) => records.map(({ tool_call_id }) => tool_call_id).toSorted()

/** Newest first. */
async function readAudit(path: string): Promise<readonly AuditRecord[]> {
  const audit = openSqliteAudit({ path, readOnly: true })
  try {
    return await audit.query({ limit: 1000 })
  } finally {
    await audit.close()
  }
}
