import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import type { AuditRecord } from '@toolgate/core/audit'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { startTestGateway, tempFolder, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { ERAS, type Era, MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'
import { nodeServer } from './support/servers.ts'

const SLOW = join(import.meta.dirname, 'support/slow-server.js')
const BIN = join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
const STOPPED = 'slow__wait failed: the gate was closed'

describe('a gateway that stops while calls run', () => {
  it('answers them, and each has one record with the reason of its end', async () => {
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

  it('lets short calls finish', async () => {
    const gateway = await startTestGateway({ servers: [nodeServer('slow', [SLOW])] })
    const answer = gateway.call('viewer', MODERN, 'slow__echo')
    await until(async () => (await started(gateway)).length === 1)
    await gateway.close()
    assert.equal(textOf(await answer), 'echo')
  })

  it('waits for longer calls, and meanwhile refuses new ones, in both eras', async () => {
    const folder = tempFolder()
    const file = join(folder.path, 'go-on')
    const gateway = await startTestGateway({ servers: [nodeServer('slow', [SLOW])], drainMs: 600_000 })
    try {
      const answers = ERAS.map((era) => gateway.call('viewer', era, 'slow__until', { file }))
      await until(async () => (await started(gateway)).length === ERAS.length)
      const closed = gateway.close()
      for (const era of ERAS) {
        const refused = await gateway.ask('viewer', era, 'tools/call', { name: 'slow__echo', arguments: {} })
        assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1'], era)
        const { error, id } = refused.json() as RpcAnswer
        assert.deepEqual(
          [id, error],
          [1, { code: -32_000, message: 'The gateway is stopping. Try again in a moment.' }],
        )
      }
      assert.equal((await send(`${gateway.url}/readyz`, { method: 'GET', headers: {} })).status, 503)
      writeFileSync(file, '')
      for (const answer of await Promise.all(answers)) assert.equal(textOf(answer), 'done after all')
      await closed
    } finally {
      await gateway.close()
      folder.remove()
    }
  })

  it('accepts a cancellation while it waits', async () => {
    const gateway = await startTestGateway({ servers: [nodeServer('slow', [SLOW])], drainMs: 600_000 })
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const { headers } = await gateway.ask('viewer', '2025-11-25', 'initialize', params)
    const session = { 'mcp-session-id': headers['mcp-session-id'] as string }
    const call = gateway.ask(
      'viewer',
      '2025-11-25',
      'tools/call',
      { name: 'slow__wait', arguments: {} },
      { id: 7, headers: session },
    )
    await until(async () => (await started(gateway)).length === 1)
    const closed = gateway.close()
    const { headers: sent } = toMessage('2025-11-25', 'notifications/cancelled')
    const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })
    await send(gateway.mcpUrl, { headers: { ...sent, authorization: 'Bearer demo-viewer', ...session }, body })
    await Promise.all([closed, call])
  })

  it('lets running calls finish on SIGTERM, even if the signal comes twice, and exits with 0', async () => {
    const folder = tempFolder()
    const { child, ready, audit } = serve(folder.path, 'drainMs: 600000')
    try {
      const file = join(folder.path, 'go-on')
      const asked = ask(await ready, MODERN, 'slow__until', { file })
      await until(() => readAudit(audit).then((found) => found.some(isCall)))
      child.kill('SIGTERM')
      child.kill('SIGTERM')
      await until(async () => (await refusal(await ready)) === 503)
      writeFileSync(file, '')
      const [[exit], answer] = await Promise.all([once(child, 'exit'), asked])
      assert.deepEqual([exit, textOf(answer)], [0, 'done after all'])
      const events = (await readAudit(audit)).filter(({ tool }) => tool === 'slow:until').map(({ event }) => event)
      assert.deepEqual(events, ['tool_result', 'tool_call'])
    } finally {
      child.kill('SIGKILL')
      folder.remove()
    }
  })

  it('exits at once at a second signal', async () => {
    const folder = tempFolder()
    const { child, ready, audit } = serve(folder.path, 'drainMs: 600000')
    try {
      const asked = ask(await ready, MODERN, 'slow__wait').catch(() => 'cut off')
      await until(() => readAudit(audit).then((found) => found.some(isCall)))
      child.kill('SIGTERM')
      await until(async () => (await refusal(await ready)) === 503)
      child.kill('SIGINT')
      assert.deepEqual(await once(child, 'exit'), [130, null])
      assert.equal(await asked, 'cut off')
    } finally {
      child.kill('SIGKILL')
      folder.remove()
    }
  })

  it('reads its file again at SIGHUP, prints the difference, and keeps running with a broken one', async () => {
    const folder = tempFolder()
    const { child, ready, stdout, stderr } = serve(folder.path, '')
    const file = join(folder.path, 'toolgate.yaml')
    const text = readFileSync(file, 'utf8')
    try {
      const url = await ready
      writeFileSync(file, text.replace("policy: [{ allow: ['*'] }]", "policy: [{ allow: ['*'], deny: ['slow:wait'] }]"))
      child.kill('SIGHUP')
      await until(() => stdout().includes('viewer loses slow:wait'))
      writeFileSync(file, text.replace('policy:', 'polcy:'))
      child.kill('SIGHUP')
      await until(() => /toolgate\.yaml:\d+:\d+: polcy: unknown key/.test(stderr()))
      assert.equal(textOf(await ask(url, MODERN, 'slow__echo')), 'echo')
      assert.match(textOf(await ask(url, MODERN, 'slow__wait')), /Unknown|not available/)
      child.kill('SIGTERM')
      assert.deepEqual(await once(child, 'exit'), [0, null])
    } finally {
      child.kill('SIGKILL')
      folder.remove()
    }
  })

  it('aborts calls that have not ended drainMs after SIGTERM, and its audit verifies', async () => {
    const folder = tempFolder()
    const yaml = `
listen: { port: 0 }
drainMs: 100
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
  return spawn(process.execPath, given, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...env, NO_COLOR: '1' } })
}

/** Runs `toolgate serve` in its own folder. `ready` resolves to its address. */
function serve(folder: string, settings: string) {
  const audit = join(folder, 'audit.db')
  const config = join(folder, 'toolgate.yaml')
  writeFileSync(
    config,
    `
listen: { port: 0 }
${settings}
servers: { slow: { command: ${process.execPath}, args: [${SLOW}] } }
callers: [{ key: demo-viewer, user: viewer }]
policy: [{ allow: ['*'] }]
state: { store: memory }
audit: { store: sqlite, path: ${audit}, mode: required }
`,
  )
  const { PORT: _, ...env } = process.env
  const child = run(['serve', '--config', config], env)
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  let stdout = ''
  const lines = createInterface({ input: child.stdout }).on('line', (line) => (stdout += `${line}\n`))
  const ready = once(lines, 'line').then(([line]) => /http:\/\/\S+\/mcp/.exec(line as string)?.[0] ?? '')
  return { child, ready, audit, stdout: () => stdout, stderr: () => stderr }
}

/** Returns the status with which a list is answered. */
async function refusal(url: string): Promise<number> {
  const { headers, body } = toMessage(MODERN, 'tools/list')
  const sent = { ...headers, authorization: 'Bearer demo-viewer' }
  return (await send(url, { headers: sent, body: JSON.stringify(body) })).status
}

async function ask(url: string, era: Era, name: string, args: object = {}): Promise<RpcAnswer> {
  const { headers, body } = toMessage(era, 'tools/call', { name, arguments: args })
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
