import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Approval } from '@toolgate/core'
import type { GatewayConfig } from '@toolgate/gateway'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { MODERN, textOf } from './support/rpc.ts'
import { nodeServer } from './support/servers.ts'

const SLOW = join(import.meta.dirname, 'support/slow-server.js')

describe('the execution options of a configuration', () => {
  async function withGateway(
    calls: NonNullable<GatewayConfig['calls']>,
    work: (gateway: TestGateway, call: (name: string) => Promise<string>) => Promise<void>,
  ): Promise<void> {
    const gateway = await startTestGateway({ servers: [nodeServer('slow', [SLOW])], calls })
    try {
      await work(gateway, async (name) => textOf(await gateway.call('viewer', MODERN, `slow__${name}`)))
    } finally {
      await gateway.close()
    }
  }

  it('limit how many calls run at once, and the size of their output', () =>
    withGateway(
      { maxOutputChars: 1000, concurrency: [{ match: 'slow:wait', max: 1, waitMs: 0 }, 'slow:echo:2'] },
      async (gateway, call) => {
        const running = call('wait')
        await until(async () => {
          const { body } = await gateway.api('/api/audit?event=tool_call')
          return (body as { records: unknown[] }).records.length > 0
        })
        assert.equal(await call('wait'), 'slow__wait is busy: 1 call is already running. Try again later.')
        assert.match(await call('long'), /^x{100,1000}… \[cut: \d+ characters\]$/)
        await gateway.close()
        assert.equal(await running, 'slow__wait failed: the gate was closed')
      },
    ))

  it('limit how long calls run', () =>
    withGateway({ deadlineMs: 500, concurrency: [] }, async (_, call) => {
      assert.equal(await call('wait'), 'slow__wait failed: no answer in 0.5 s')
    }))

  for (const store of ['memory', 'sqlite'] as const) {
    it(`limit how long an approval is valid, in ${store}`, async () => {
      const folder = tempFolder()
      const path = store === 'sqlite' ? { path: join(folder.path, 'state.db') } : {}
      const other = await startTestGateway({
        servers: [nodeServer('slow', [SLOW])],
        policy: [{ ask: ['slow:echo'] }],
        approvals: { ttlMs: 5000 },
        state: { store, ...path },
      })
      try {
        await other.call('viewer', MODERN, 'slow__echo')
        const { body } = await other.api('/api/approvals')
        const [approval] = (body as { approvals: readonly Approval[] }).approvals
        assert.equal((approval?.expiresAt ?? 0) - (approval?.requestedAt ?? 0), 5000)
      } finally {
        await other.close()
        folder.remove()
      }
    })
  }
})
