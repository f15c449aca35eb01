import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import type { GatewayConfig } from '@toolgate/gateway'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { callerConfig, CALLERS, type Who } from './support/keys.ts'
import { isAlive } from './support/processes.ts'
import { ERAS, type Era, MODERN, textOf } from './support/rpc.ts'
import { nodeServer, type ServerConfig } from './support/servers.ts'

const STATEFUL = join(import.meta.dirname, '../packages/gateway/fixtures/stateful-stdio.ts')

/** A stateful server with an instance for each user. */
function statefulServer(name = 'browser'): ServerConfig {
  const { cwd: _shared, ...server } = nodeServer(name, [STATEFUL], { per: 'user' })
  return server
}

/** Runs a test with a gateway whose instances have their folders in a folder that is removed after it. */
async function withGateway(
  given: Partial<GatewayConfig>,
  test: (gateway: TestGateway, folder: string) => Promise<void>,
): Promise<void> {
  const folder = tempFolder()
  const instances = { path: folder.path, ...given.instances }
  const gateway = await startTestGateway({ servers: [statefulServer()], ...given, instances })
  try {
    await test(gateway, folder.path)
  } finally {
    await gateway.close()
    folder.remove()
  }
}

const recall = async (gateway: TestGateway, who: Who, era: Era = MODERN) =>
  JSON.parse(textOf(await gateway.call(who, era, 'browser__recall'))) as {
    readonly notes: readonly string[]
    readonly pid: number
  }

describe('a server with an instance for each user', () => {
  it('shows no user what another does, in any era', () =>
    withGateway({}, async (gateway) => {
      for (const who of ['viewer', 'operator'] as const)
        for (const era of ERAS) await gateway.call(who, era, 'browser__remember', { note: `${who} in ${era}` })
      for (const who of ['viewer', 'operator'] as const)
        for (const era of ERAS)
          assert.deepEqual(
            (await recall(gateway, who, era)).notes,
            ERAS.map((one) => `${who} in ${one}`),
          )
      assert.deepEqual((await recall(gateway, 'admin')).notes, [])
    }))

  it('refuses a call beyond the bound as `wait`, with the reason, on record', () =>
    withGateway({ instances: { max: 1 } }, async (gateway) => {
      const running = gateway.call('viewer', MODERN, 'browser__steps', { note: 'x' })
      await until(() => gateway.servers()[0]?.instances?.running === 1)
      const { result } = await gateway.call('operator', MODERN, 'browser__recall')
      assert.equal(result?.isError, true)
      assert.equal(
        result?.content?.[0]?.text,
        'browser__recall is busy: all instances of its servers are in use. Try again later.',
      )
      await running
      assert.deepEqual((await recall(gateway, 'operator')).notes, [])
      const { body } = await gateway.api('/api/audit?outcome=refused')
      const [record] = (body as { records: readonly { reason?: string; user_id?: string; detail?: string }[] }).records
      assert.deepEqual(
        [record?.reason, record?.user_id, record?.detail],
        [
          'no_capacity',
          'operator',
          'server "browser" has no instance for this user, and all 1 instances of all users are in use',
        ],
      )
    }))

  it('is counted in the API and the metrics, and shows approvers of the tenant whose instances there are', async () => {
    const reader = callerConfig('demo-reader', { user: 'reader' }, 'console')
    const ofTenant = callerConfig('demo-acme', { user: 'ann', tenant: 'acme', roles: ['approver'] }, 'console')
    await withGateway({ callers: [...CALLERS, reader, ofTenant] }, async (gateway) => {
      await recall(gateway, 'viewer')
      await until(() => gateway.servers()[0]?.instances?.idle === 1)
      const seenBy = async (key: string, as: string) => {
        const { body } = await gateway.api(`/api/tools?${as}`, { key })
        return (body as { servers: readonly { instances?: unknown }[] }).servers[0]?.instances
      }
      const counts = { starting: 0, running: 0, idle: 1, down: 0 }
      assert.deepEqual(await seenBy('demo-console', 'as=viewer'), {
        ...counts,
        users: [{ user: 'viewer', state: 'idle' }],
      })
      assert.deepEqual(await seenBy('demo-reader', 'as=viewer'), counts)
      const own = `caller=${encodeURIComponent(JSON.stringify({ user: 'ann', tenant: 'acme' }))}`
      assert.deepEqual(await seenBy('demo-acme', own), { ...counts, idle: 0, users: [] })
      const metrics = await fetch(`${gateway.url}/metrics`, { headers: { authorization: 'Bearer demo-console' } })
      assert.match(await metrics.text(), /^toolgate_upstream_instances\{server="browser",state="idle"\} 1$/m)
    })
  })

  it('leaves no instance behind when the gateway is killed', async () => {
    const folder = tempFolder()
    const program = `
      import { startTestGateway } from ${JSON.stringify(join(import.meta.dirname, 'support/gateway.ts'))}
      const [servers, path] = JSON.parse(process.argv[1])
      const gateway = await startTestGateway({ servers: servers.map((one) => ({ ...one, tools: new Map() })), instances: { path } })
      const pids = []
      for (const who of ['viewer', 'operator']) {
        const { result } = await gateway.call(who, '2026-07-28', 'browser__recall')
        pids.push(JSON.parse(result.content[0].text).pid)
      }
      console.log(JSON.stringify(pids))`
    const given = JSON.stringify([[statefulServer()], folder.path])
    const args = ['--conditions=toolgate-source', '--input-type=module', '-e', program, given]
    const gateway = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      const [line] = (await once(createInterface(gateway.stdout), 'line')) as [string]
      const pids = JSON.parse(line) as number[]
      assert.equal(pids.filter(isAlive).length, 2)
      gateway.kill('SIGKILL')
      await until(() => !pids.some(isAlive))
    } finally {
      gateway.kill('SIGKILL')
      folder.remove()
    }
  })
})
