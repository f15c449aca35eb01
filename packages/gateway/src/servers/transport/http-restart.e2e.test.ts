import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { it } from 'node:test'
import { serverConfig, SERVERS, testUpstream, until } from '../../../fixtures/servers.ts'
import { findFreePort } from './open.ts'

const { signal } = new AbortController()
/** A busy machine takes seconds to start the server. */
const PATIENT_MS = 30_000

it('an upstream over HTTP is served again after a restart that lost its sessions', async (t) => {
  const port = await findFreePort()
  const start = () => {
    const args = [SERVERS.everything, 'streamableHttp']
    const child = spawn(process.execPath, args, { env: { PORT: String(port) }, stdio: 'ignore' })
    t.after(() => child.kill('SIGKILL'))
    return child
  }
  const first = start()
  const config = serverConfig({ url: `http://127.0.0.1:${port}/mcp` })
  const upstream = testUpstream(t, config, { backoff: { firstMs: 20, maxMs: 100 } })
  const isReady = () => until(() => upstream.state.status === 'ready', PATIENT_MS)
  const call = () =>
    upstream.call({
      method: 'tools/call',
      params: { name: 'echo', arguments: { message: 'again' } },
      caller: {},
      signal,
    })
  await upstream.start()
  await isReady()
  const { tools } = upstream.items
  first.kill('SIGKILL')
  await until(() => first.signalCode !== null, PATIENT_MS)
  start()
  const answer = await isReady()
    .then(call)
    .catch(() => isReady().then(call))
  assert.match(JSON.stringify(answer.content), /again/)
  assert.equal(upstream.items.tools, tools)
})
