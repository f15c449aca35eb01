import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseExpiry } from './commands/keys.ts'
import { timeAgo } from './command-table/values.ts'
import { localTime, parseMoment, parseTime, zoneOf } from './times.ts'

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

describe('parseMoment', () => {
  // A Wednesday, in whichever zone the test runs.
  const now = new Date(2026, 10, 25, 14, 30, 15)
  const moments: readonly (readonly [text: string, at: Date | undefined])[] = [
    ['now', now],
    ['today', new Date(2026, 10, 25)],
    ['Yesterday', new Date(2026, 10, 24)],
    ['yesterday 09:30', new Date(2026, 10, 24, 9, 30)],
    ['monday', new Date(2026, 10, 23)],
    ['wednesday', new Date(2026, 10, 25)],
    ['thursday', new Date(2026, 10, 19)],
    ['9:05', new Date(2026, 10, 25, 9, 5)],
    ['09:05:06', new Date(2026, 10, 25, 9, 5, 6)],
    ['2026-11-21', new Date(2026, 10, 21)],
    ['2026-11-21 09:00', new Date(2026, 10, 21, 9)],
    ['2026-11-21T09:00:00', new Date(2026, 10, 21, 9)],
    ['2026-11-21T09:00:00Z', new Date(Date.UTC(2026, 10, 21, 9))],
    ['2h', new Date(2026, 10, 25, 12, 30, 15)],
    ['2h ago', new Date(2026, 10, 25, 12, 30, 15)],
    ['2w', new Date(now.getTime() - 14 * 86_400_000)],
    ...[
      '',
      ' ',
      'tomorrow',
      'somday',
      '24:00',
      '12:60',
      '2026-02-30',
      '2026-11-21 25:00',
      '5',
      '2x',
      '-2h',
      'T09:00',
    ].map((text) => [text, undefined] as const),
  ]
  for (const [text, at] of moments)
    it(`${at === undefined ? 'refuses' : 'reads'} ${JSON.stringify(text)}`, () => {
      assert.equal(parseMoment(text, now), at?.getTime())
    })
})

describe('localTime', () => {
  it('returns the local day and time of day, and zoneOf the zone', () => {
    assert.deepEqual(localTime(new Date(2026, 0, 2, 3, 4, 5)), ['2026-01-02', '03:04:05'])
    const at = (minutes: number) => zoneOf(Object.assign(new Date(0), { getTimezoneOffset: () => minutes }))
    assert.deepEqual([at(0), at(-120), at(210)], ['UTC', 'UTC+02:00', 'UTC-03:30'])
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
