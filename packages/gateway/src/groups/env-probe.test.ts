import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { envProbe } from './env-probe.ts'
import { asking } from './testing.ts'

describe('envProbe', () => {
  const env = { KEY: 'very-secret', BLANK: '', SPACES: ' \t\n ' }
  const ask = (name: string, equals?: string) => envProbe(name, { env, equals }).ask(asking())

  it('works where the variable is set and not blank', () => {
    assert.equal(ask('KEY'), true)
    const reason = (name: string) => ({ available: false, reason: `the environment variable ${name} is not set` })
    assert.deepEqual(ask('BLANK'), reason('BLANK'))
    assert.deepEqual(ask('SPACES'), reason('SPACES'))
    assert.deepEqual(ask('toString'), reason('toString'))
  })

  it('works where it has exactly the value, and tells neither value', () => {
    assert.equal(ask('KEY', 'very-secret'), true)
    const answer = ask('KEY', 'other')
    assert.deepEqual(answer, {
      available: false,
      reason: 'the environment variable KEY does not have the value it should',
    })
  })

  it('reads the environment anew each time', () => {
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
