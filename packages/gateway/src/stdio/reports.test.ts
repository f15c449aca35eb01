import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { UpstreamError } from '../model/upstream.ts'
import { Reports } from './reports.ts'

function setUp() {
  const logged: string[] = []
  const url = new URL('http://127.0.0.1:8787/mcp')
  const hints = { start: 'Start it.', key: 'Give a key.' }
  return { logged, reports: new Reports({ url, hints, log: (text) => logged.push(text) }) }
}

const DOWN = new UpstreamError('upstream_down', 'refused the connection')

describe('Reports', () => {
  it('logs a problem once, until something works again', () => {
    const { logged, reports } = setUp()
    const problem = 'The gateway at http://127.0.0.1:8787 refused the connection. Start it.'
    assert.equal(reports.unreached(DOWN), problem)
    reports.unreached(DOWN)
    assert.deepEqual(logged, [problem])
    reports.reached()
    reports.unreached(DOWN)
    assert.deepEqual(logged, [problem, problem])
  })

  it('says how to give a key where the gateway refuses it', () => {
    const { logged, reports } = setUp()
    assert.equal(reports.refused(401, 'No key.'), 'No key. Give a key.')
    assert.equal(reports.refused(500, 'Broken.'), 'Broken.')
    assert.deepEqual(logged, ['No key. Give a key.', 'Broken.'])
  })

  it('tells a broken answer from something that is no gateway', () => {
    const { reports } = setUp()
    assert.match(reports.unreadable(200), /ended the answer too early/)
    assert.match(reports.unreadable(404), /not a Toolgate gateway .* \(HTTP 404\)/)
  })

  it('has the best that has happened as its outcome', () => {
    const { reports } = setUp()
    const outcomes = [reports.outcome]
    for (const status of [401, 403, 404, 401]) {
      reports.reached(status)
      outcomes.push(reports.outcome)
    }
    assert.deepEqual(outcomes, ['unreachable', 'refused', 'refused', 'served', 'served'])
  })
})
