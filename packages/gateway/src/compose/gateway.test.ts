import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Policy } from '@toolgate/core'
import type { GatewayConfig } from '../config/config.ts'
import { startGateway } from './gateway.ts'

const config = (policy: readonly Policy[]): GatewayConfig => ({
  file: '/test/toolgate.yaml',
  listen: { host: '127.0.0.1', port: 0 },
  servers: [],
  callers: [],
  groups: [],
  policy,
  limits: [],
  audit: { store: 'memory', mode: 'batched' },
})

describe('startGateway', () => {
  it('refuses to start without a policy that has a clause', async () => {
    for (const policy of [[], [{ name: 'baseline' }], [{ deny: [], ask: [], requireTags: [] }]])
      await assert.rejects(startGateway(config(policy)), {
        code: 'config_invalid',
        message: 'policy: would let every key call every tool; use [{ allow: ["*"] }] to mean that',
      })
  })

  it('starts with a policy that allows everything in the open', async () => {
    const gateway = await startGateway(config([{ allow: ['*'] }]))
    await gateway.close()
  })
})
