import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { redactor } from '@toolgate/core/redact'
import type { ProbeConfig } from '../config/config.ts'
import { toProbe } from './probes.ts'
import { createReaper } from '../upstream/reaper.ts'

const TCP = { host: '127.0.0.1', port: 4444 }
const CONFIGS: readonly (readonly [ProbeConfig, string])[] = [
  [{ env: 'BROWSER', equals: '1' }, 'env '],
  [{ tcp: TCP, timeoutMs: 50 }, 'tcp 127.0.0.1:4444'],
  [{ tcp: TCP }, 'tcp 127.0.0.1:4444'],
  [{ http: 'http://127.0.0.1:9200/', status: [200], headers: { a: 'b' }, timeoutMs: 50 }, 'http'],
  [{ http: 'http://127.0.0.1:9200/' }, 'http'],
  [{ command: ['true'], cwd: '/tmp', variables: { A: 'b' }, timeoutMs: 50 }, 'command'],
]

describe('toProbe', () => {
  for (const [config, key] of CONFIGS)
    it(`makes the probe of ${JSON.stringify(config)}`, () => {
      const probe = toProbe(config, { servers: [], redactor, reaper: createReaper() })
      assert.ok(probe.key.startsWith(key), probe.key)
      assert.equal(probe.kind, key.split(' ', 1)[0])
      if ('timeoutMs' in config) assert.equal(probe.timeoutMs, 50)
    })
})
