import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'

const BYTES = 4 * 1024 * 1024

const folder = tempFolder()
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${BYTES}`, 'none', folder.path], { encoding: 'utf8' })
const reason =
  mounted.status !== 0 && `a full disk is left out (mount: ${mounted.error?.message ?? mounted.stderr.trim()})`
if (reason) console.log(reason)
after(() => {
  if (mounted.status === 0) spawnSync('umount', ['--lazy', folder.path])
  folder.remove()
})

/** The file system of the state is the test's own, and small. */
describe('a gateway whose disk is full', { skip: reason }, () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await startTestGateway({ state: { store: 'sqlite', path: path.join(folder.path, 'state.db') } })
  })
  after(() => gateway.close())

  const ready = async (key?: string) => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
    const answer = await fetch(`${gateway.url}/readyz`, { headers })
    return {
      status: answer.status,
      body: (await answer.json()) as { readonly status: string; readonly state?: object },
    }
  }

  it('is not ready, says why to people, refuses what it could not keep, and is ready again once there is room', async () => {
    assert.deepEqual(await ready(), { status: 200, body: { status: 'ready' } })
    const filler = path.join(folder.path, 'filler')
    assert.throws(() => writeFileSync(filler, Buffer.alloc(BYTES)), { code: 'ENOSPC' })
    const refused = await until(async () => {
      const { status, body } = await ready()
      return status === 503 && body
    })
    assert.deepEqual(refused, { status: 'refusing', state: { code: 'state_unavailable' } })
    const { body } = await ready(KEYS.console)
    assert.deepEqual(body.state, {
      code: 'state_unavailable',
      message: 'The state cannot be read or written.',
    })
    const halt = { user: 'viewer', reason: 'x'.repeat(400) }
    const answer = await gateway.api('/api/halts', { method: 'POST', body: halt })
    assert.equal(answer.status, 503)
    assert.equal((answer.body as { error: { code: string } }).error.code, 'state_unavailable')
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200)
    rmSync(filler)
    await until(async () => (await ready()).status === 200)
  })
})
