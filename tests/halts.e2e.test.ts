import assert from 'node:assert/strict'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { AuditRecord } from '@toolgate/core/audit'
import type { HaltRow } from '@toolgate/gateway'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { ERAS, MODERN, textOf } from './support/rpc.ts'
import { nodeServer } from './support/servers.ts'

const SLOW = join(import.meta.dirname, 'support/slow-server.js')

describe('a halt', () => {
  let folder: ReturnType<typeof tempFolder>
  let gateway: TestGateway
  const start = () =>
    startTestGateway({
      servers: [nodeServer('slow', [SLOW])],
      state: { store: 'sqlite', path: join(folder.path, 'state.db') },
    })
  beforeEach(async () => {
    folder = tempFolder()
    gateway = await start()
  })
  afterEach(async () => {
    await gateway.close()
    folder.remove()
  })

  const toolgate = async (...args: string[]) => runCommand(gateway.url, ...args)
  const records = async (event: string) => {
    const { body } = await gateway.api(`/api/audit?event=${event}`)
    return (body as { records: readonly AuditRecord[] }).records
  }

  it('by the command stops running and new calls, on every revision, until it is released', async () => {
    const running = ERAS.map((era) => gateway.call('viewer', era, 'slow__wait'))
    await until(async () => (await records('tool_call')).length === ERAS.length)
    const halting = await toolgate('halt', '--tool', 'slow:*', '--reason', 'its key has leaked')
    assert.deepEqual([halting.code, halting.err], [0, ''])
    assert.match(halting.out, /^halted {2}tool slow:\*: 4 tools now\n/)
    for (const answer of await Promise.all(running))
      assert.equal(textOf(answer), 'slow__wait is unavailable: its key has leaked.')
    assert.deepEqual(
      (await records('tool_abandoned')).map(({ reason }) => reason),
      ERAS.map(() => 'halted'),
    )
    for (const era of ERAS) {
      assert.deepEqual(await gateway.list('viewer', era), [])
      assert.equal(
        textOf(await gateway.call('viewer', era, 'slow__echo')),
        'slow__echo is unavailable: its key has leaked.',
      )
    }
    assert.match((await toolgate('why', 'slow:echo', '--as', 'viewer')).out, /halts: halt [0-9a-f]{16} by .*\(halted\)/)
    assert.equal((await toolgate('release', '--tool', 'slow:*')).code, 0)
    assert.equal(textOf(await gateway.call('viewer', MODERN, 'slow__echo')), 'echo')
    const [set] = await records('halt_set')
    const [released] = await records('halt_released')
    assert.deepEqual([set?.detail, released?.user_id], ['tool slow:*: its key has leaked', set?.user_id])
  })

  it('survives a restart', async () => {
    await toolgate('halt', '--user', 'viewer', '--reason', 'r')
    await gateway.close()
    gateway = await start()
    assert.match((await toolgate('halts')).out, /user viewer +4 tools, 1 person/)
    assert.deepEqual([await gateway.list('viewer', MODERN), (await gateway.list('admin', MODERN)).length], [[], 4])
  })

  it('of an unknown name is set, and the command warns: it applies to a later tool or user of that name', async () => {
    const tool = await toolgate('halt', '--tool', 'slow:ecko', '--reason', 'r')
    assert.equal(tool.code, 0)
    assert.match(tool.err, /WARNING {2}It stops nothing now: no tool is "slow:ecko"\. Did you mean "slow:echo"\?/)
    const user = await toolgate('halt', '--user', 'veiwer', '--reason', 'r')
    assert.equal(user.code, 0)
    assert.match(user.err, /WARNING {2}It stops nothing now: nobody named "veiwer" was seen\. Did you mean "viewer"\?/)
    const { out } = await toolgate('halts')
    assert.match(out, /slow:ecko/)
    assert.match(out, /user veiwer/)
  })

  it('over HTTP requires a person with the role', async () => {
    const refused = await gateway.api('/api/halts', {
      key: KEYS.viewer,
      method: 'POST',
      body: { all: true, reason: 'r' },
    })
    assert.equal(refused.status, 403)
    const { status, body } = await gateway.api('/api/halts', { method: 'POST', body: { all: true, reason: 'r' } })
    assert.equal(status, 200)
    assert.equal((await gateway.api(`/api/halts/${(body as HaltRow).id}`, { method: 'DELETE' })).status, 200)
  })
})
