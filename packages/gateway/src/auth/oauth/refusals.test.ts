import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LogLine } from '../../model/log-line.ts'
import { TokenRefusals } from './refusals.ts'

function setup() {
  let nowMs = 0
  const lines: LogLine[] = []
  const refusals = new TokenRefusals({ monotonicMs: () => nowMs }, (line) => lines.push(line))
  return { refusals, lines, pass: (ms: number) => (nowMs += ms) }
}

describe('TokenRefusals', () => {
  it('counts each refusal, and logs one a minute for each reason of each issuer', () => {
    const { refusals, lines, pass } = setup()
    for (let i = 0; i < 1000; i++) refusals.add('corp', 'audience', `the audience is ${i}`)
    refusals.add('partner', 'audience', 'other')
    refusals.add('corp', 'key', 'unknown key')
    assert.deepEqual(refusals.list, [
      { issuer: 'corp', reason: 'audience', count: 1000 },
      { issuer: 'partner', reason: 'audience', count: 1 },
      { issuer: 'corp', reason: 'key', count: 1 },
    ])
    assert.equal(lines.length, 3)
    pass(59_999)
    refusals.add('corp', 'audience', 'again')
    assert.equal(lines.length, 3)
    pass(1)
    refusals.add('corp', 'audience', 'again')
    assert.deepEqual(lines.at(-1), {
      level: 'warn',
      message: 'a token of the issuer corp was refused (audience), and 1000 others since the last line',
      detail: 'again',
    })
  })

  it('says what happens to every token only to those who look for it', () => {
    const { refusals, lines } = setup()
    for (const reason of ['expired', 'early', 'inactive', 'signature'] as const) refusals.add('corp', reason, '')
    assert.deepEqual(
      lines.map(({ level }) => level),
      ['debug', 'debug', 'debug', 'warn'],
    )
  })

  it('cuts what a sender has chosen', () => {
    const { refusals, lines } = setup()
    refusals.add('unknown', 'issuer', 'x'.repeat(10_000))
    assert.equal(lines[0]?.detail?.length, 500)
  })
})
