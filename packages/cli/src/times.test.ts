import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseExpiry } from './commands/keys.ts'
import { timeAgo } from './command-table/values.ts'
import { parseTime } from './times.ts'

describe('parseTime', () => {
  const times: readonly (readonly [text: string, iso: string | undefined])[] = [
    ['2026-11-21', '2026-11-21T00:00:00.000Z'],
    ['2026-11-21T09:00:00Z', '2026-11-21T09:00:00.000Z'],
    ['2026-11-21T00:30:00+02:00', '2026-11-20T22:30:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['2026-02-29', undefined],
    ['2026-02-30T10:00:00Z', undefined],
    ['2026-13-01', undefined],
    ['2026-11-21T09:00:00', undefined],
    ['yesterday', undefined],
    ['5', undefined],
  ]
  for (const [text, iso] of times)
    it(`${iso === undefined ? 'refuses' : 'reads'} ${text}`, () => {
      const ms = parseTime(text)
      assert.equal(ms === undefined ? undefined : new Date(ms).toISOString(), iso)
    })
})

describe('times of options', () => {
  it('are no longer ago than 1970, where dates end', () => {
    for (const text of ['999999999d', '30000d', '1969-12-31'])
      assert.throws(() => timeAgo(text), /It is a time such as/)
    assert.ok(timeAgo('20000d') > 0)
  })

  it('are to come, where a key ends', () => {
    const nowMs = Date.parse('2026-11-23T00:00:00Z')
    assert.equal(parseExpiry('90d', nowMs), Date.parse('2027-02-21T00:00:00Z'))
    assert.equal(parseExpiry('2027-01-31', nowMs), Date.parse('2027-01-31'))
    for (const text of ['2026-11-22', '5', '0d', '2027-02-30', 'soon'])
      assert.throws(() => parseExpiry(text, nowMs), { exit: 'usage' })
  })
})
