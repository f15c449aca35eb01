import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { redactor } from '@toolgate/values/redact'
import type { ProbeConfig } from '../../config/config.ts'
import { envProbe, toProbe } from './probes.ts'
import { asking } from '../../testing/probes.ts'
import { createReaper } from '../../util/reaper.ts'

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

describe('envProbe', () => {
  const env = { KEY: 'very-secret', BLANK: '', SPACES: ' \t\n ' }
  const ask = (name: string, equals?: string) => envProbe(name, { env, equals }).ask(asking())

  it('works if the variable is set and not blank', () => {
    assert.equal(ask('KEY'), true)
    const reason = (name: string) => ({ available: false, reason: `the environment variable ${name} is not set` })
    assert.deepEqual(ask('BLANK'), reason('BLANK'))
    assert.deepEqual(ask('SPACES'), reason('SPACES'))
    assert.deepEqual(ask('toString'), reason('toString'))
  })

  it('works if it has exactly the value, and shows neither value', () => {
    assert.equal(ask('KEY', 'very-secret'), true)
    const answer = ask('KEY', 'other')
    assert.deepEqual(answer, {
      available: false,
      reason: 'the environment variable KEY does not have the expected value',
    })
  })

  it('reads the environment each time', () => {
    const changing: Record<string, string> = {}
    const probe = envProbe('LATER', { env: changing })
    assert.notEqual(probe.ask(asking()), true)
    changing['LATER'] = 'set'
    assert.equal(probe.ask(asking()), true)
  })

  it('is one probe for one variable and value', () => {
    assert.equal(envProbe('A').key, envProbe('A').key)
    assert.notEqual(envProbe('A').key, envProbe('A', { equals: 'null' }).key)
  })
})
