import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

import {
  descendantsOf,
  everythingOverHttp,
  HOSTILE,
  MODERN,
  MODERN_STDIO,
  nodeServer,
  SERVERS,
  testUpstream,
  until,
} from '../../../fixtures/servers.ts'
import { surroundings } from '../../util/surroundings.ts'
import { exposedAddress } from './open.ts'

const { signal } = new AbortController()
const LOOPBACK = join(import.meta.dirname, '../../../assets/loopback.js')
const run = promisify(execFile)

/** Ports on which a socket listens, with the hexadecimal addresses, of IPv4 and IPv6. */
function listening(): { address: string; port: number }[] {
  const LISTEN = '0A'
  return ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((file) => readFileSync(file, 'utf8').trim().split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state]) => state === LISTEN)
    .map(([, local = '']) => ({
      address: local.split(':')[0] ?? '',
      port: Number.parseInt(local.split(':')[1] ?? '', 16),
    }))
}

const textOf = (content: readonly unknown[] = []) => (content[0] as { text: string }).text

describe('a server that is started and then spoken to over HTTP', () => {
  it('gets a free port, and only its surroundings and the environment that is named', async (t) => {
    const secret = 'TOOLGATE_TEST_SECRET'
    const trust = 'NODE_EXTRA_CA_CERTS'
    const before = process.env[trust]
    process.env[secret] = 'must not be inherited'
    process.env[trust] = '/etc/test.pem'
    t.after(() => {
      delete process.env[secret]
      if (before === undefined) delete process.env[trust]
      else process.env[trust] = before
    })
    const server = testUpstream(t, everythingOverHttp({ env: { PORT: '${port}', NAMED: 'yes' } }))
    await server.start()
    assert.equal(server.state.status, 'ready')
    assert.equal(server.state.era, 'legacy')
    const { content } = await server.call({
      method: 'tools/call',
      params: { name: 'get-env', arguments: {} },
      caller: {},
      signal,
    })
    const env = JSON.parse(textOf(content)) as Record<string, string>
    assert.deepEqual(
      Object.keys(env).toSorted(),
      [...Object.keys(surroundings()), 'NAMED', 'NODE_OPTIONS', 'PORT'].toSorted(),
    )
    assert.equal(env[trust], '/etc/test.pem')
    assert.equal(env['NAMED'], 'yes')
    assert.match(env['PORT'] ?? '', /^\d+$/)
  })

  it('returns its tools, with those that can only run as tasks', async (t) => {
    const server = testUpstream(t, everythingOverHttp())
    await server.start()
    assert.equal(server.items.tools.length, 13)
    assert.deepEqual(server.state.rejected, [])
  })

  it('reports progress that comes as events', async (t) => {
    const server = testUpstream(t, everythingOverHttp())
    await server.start()
    const seen: number[] = []
    const input = { duration: 0.1, steps: 2 }
    const onProgress = ({ progress }: { progress: number }) => void seen.push(progress)
    await server.call({
      method: 'tools/call',
      params: { name: 'trigger-long-running-operation', arguments: input },
      caller: {},
      signal,
      onProgress,
    })
    assert.deepEqual(seen, [1, 2])
  })

  it('is bound to loopback if the configuration asks for it', async (t) => {
    const server = testUpstream(t, everythingOverHttp())
    await server.start()
    const { content } = await server.call({
      method: 'tools/call',
      params: { name: 'get-env', arguments: {} },
      caller: {},
      signal,
    })
    const port = Number(JSON.parse(textOf(content)).PORT)
    assert.equal(await exposedAddress(port), undefined)
    assert.deepEqual(
      listening().filter((socket) => socket.port === port),
      [{ address: '0100007F', port }],
    )
  })

  it('is refused when it cannot be bound to loopback', async (t) => {
    // Without the preload the real server listens on all addresses, as a server that is not of Node would.
    const open = nodeServer([SERVERS.everything, 'streamableHttp'], {
      command: 'sh',
      args: ['-c', `unset NODE_OPTIONS; exec "${process.execPath}" "${SERVERS.everything}" streamableHttp`],
      env: { PORT: '${port}' },
      url: 'http://127.0.0.1:${port}/mcp',
    })
    const exposed = testUpstream(t, open)
    await exposed.start()
    assert.equal(exposed.state.status, 'ready')
    const outward = await exposedAddress(Number(await portOf(exposed)))
    const refused = testUpstream(t, { ...open, loopback: true }, { backoff: { firstMs: 1_000_000, maxMs: 1_000_000 } })
    await refused.start()
    // A machine that has no other address than loopback has nothing to be exposed on.
    if (outward === undefined) assert.equal(refused.state.status, 'ready')
    else assert.match(refused.state.reason ?? '', /^also listens on .*, although it must be bound to loopback/)
  })

  it('speaks the modern era if the server does', async (t) => {
    const args = ['--conditions=toolgate-source', MODERN]
    const server = testUpstream(t, everythingOverHttp({ args }))
    await server.start()
    assert.equal(server.state.era, 'modern')
    assert.equal(
      textOf(
        (
          await server.call({
            method: 'tools/call',
            params: { name: 'echo', arguments: { message: 'hi' } },
            caller: {},
            signal,
          })
        ).content,
      ),
      'Echo: hi',
    )
  })

  it('is started again, on another port, when it has died', async (t) => {
    const before = new Set(descendantsOf(process.pid))
    const server = testUpstream(t, everythingOverHttp())
    await server.start()
    const child = descendantsOf(process.pid).find(
      (pid) => !before.has(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('streamableHttp'),
    )
    const input = { duration: 30, steps: 1 }
    assert.ok(child)
    const hanging = server.call({
      method: 'tools/call',
      params: { name: 'trigger-long-running-operation', arguments: input },
      caller: {},
      signal,
    })
    setTimeout(() => process.kill(child, 'SIGKILL'), 100)
    await assert.rejects(hanging, { code: 'upstream_down' })
    await until(() => server.state.restarts === 1 && server.state.status === 'ready')
    await server.call({
      method: 'tools/call',
      params: { name: 'echo', arguments: { message: 'again' } },
      caller: {},
      signal,
    })
  })

  it('goes down with the reason of its child, or for want of a port', async (t) => {
    const given = { startTimeoutMs: 500 }
    const exits = testUpstream(t, everythingOverHttp({ args: [HOSTILE, 'exit'] }), {
      backoff: { firstMs: 1_000_000, maxMs: 1_000_000 },
    })
    const hangs = testUpstream(t, everythingOverHttp({ args: [HOSTILE, 'hang'], ...given }), {
      backoff: { firstMs: 1_000_000, maxMs: 1_000_000 },
    })
    await Promise.all([exits.start(), hangs.start()])
    assert.equal(exits.state.reason, 'exited with code 1 (Error: no such folder)')
    assert.match(hangs.state.reason ?? '', /^did not listen on port \d+ in 0.5 s$/)
  })
})

async function portOf(server: ReturnType<typeof testUpstream>): Promise<string> {
  const { content } = await server.call({
    method: 'tools/call',
    params: { name: 'get-env', arguments: {} },
    caller: {},
    signal,
  })
  return JSON.parse(textOf(content)).PORT
}

describe('loopback.js', () => {
  const forms = [
    'listen()',
    'listen(0)',
    'listen("0")',
    'listen(0, "0.0.0.0")',
    'listen(0, "::", 10)',
    'listen({ port: 0 })',
    'listen({ port: 0, host: "::", ipv6Only: true })',
    'listen(() => undefined)',
    'listen(0, () => undefined)',
  ]
  for (const form of forms) {
    it(`binds server.${form} to 127.0.0.1`, async () => {
      const program = `import http from 'node:http'
        const server = http.createServer()
        server.${form}
        server.on('listening', () => { console.log(server.address().address); server.close() })`
      const args = ['--import', LOOPBACK, '--input-type=module', '-e', program]
      assert.equal((await run(process.execPath, args)).stdout, '127.0.0.1\n')
    })
  }

  it('leaves sockets of the file system alone, and calls back', async () => {
    const program = `import net from 'node:net'
      const server = net.createServer()
      server.listen('\\0toolgate-test-' + process.pid, () => { console.log(typeof server.address()); server.close() })`
    const args = ['--import', LOOPBACK, '--input-type=module', '-e', program]
    assert.equal((await run(process.execPath, args)).stdout, 'string\n')
  })
})

describe('a server of MCP 2026-07-28 on stdio', () => {
  it('announces that its tools changed on the subscription that it is asked for', async (t) => {
    const upstream = testUpstream(t, nodeServer([MODERN_STDIO], { era: 'modern' }))
    await upstream.start()
    assert.deepEqual(
      upstream.items.tools.map(({ name }) => name),
      ['keep', 'drop', 'ask'],
    )
    await upstream.call({ method: 'tools/call', params: { name: 'drop', arguments: {} }, caller: {}, signal })
    await until(() => upstream.items.tools.length === 2)
    assert.equal(upstream.state.restarts, 0)
  })

  it('gets an answer to each request, though this revision has none and nobody is asked', async (t) => {
    const upstream = testUpstream(t, nodeServer([MODERN_STDIO], { era: 'modern' }))
    await upstream.start()
    const ask = async (method: string) => {
      const params = { name: 'ask', arguments: { method } }
      const { content } = await upstream.call({ method: 'tools/call', params, caller: {}, signal })
      return JSON.parse((content as readonly { readonly text: string }[])[0]?.text ?? '') as object
    }
    assert.deepEqual(await ask('ping'), { jsonrpc: '2.0', id: 'asked', result: {} })
    const error = { code: -32_601, message: 'roots/list is not supported' }
    assert.deepEqual(await ask('roots/list'), { jsonrpc: '2.0', id: 'asked', error })
    assert.ok(upstream.lines.some(({ message }) => message === 'sent a request to its client, which was refused'))
  })
})
