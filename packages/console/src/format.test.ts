import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  count,
  formatFor,
  instancesText,
  formatNumber,
  formatAgo,
  formatDuration,
  formatExact,
  formatIn,
  formatTime,
  limitText,
  toSentence,
} from './format.ts'

describe('formatDuration', () => {
  it('uses the unit that fits the duration', () => {
    const cases: [number, string][] = [
      [0, '< 1 ms'],
      [0.4, '< 1 ms'],
      [83.2, '83 ms'],
      [1400, '1.4 s'],
      [42_000, '42 s'],
      [125_000, '2 min'],
      [3 * 3_600_000, '3 h'],
      [5 * 86_400_000, '5 days'],
    ]
    for (const [ms, text] of cases) assert.equal(formatDuration(ms), text)
  })
})

describe('formatAgo', () => {
  it('formats the past, and treats a clock slightly ahead as now', () => {
    assert.equal(formatAgo(1000, 41_000), '40 s ago')
    assert.equal(formatAgo(1000, 2000), 'just now')
    assert.equal(formatAgo(5000, 1000), 'just now')
  })
})

describe('formatIn', () => {
  it('formats the future', () => {
    assert.equal(formatIn(560_000, 0), 'in 9 min')
    assert.equal(formatIn(0, 1), 'now')
  })
})

describe('formatTime', () => {
  it('has seconds today, the day on another one, and the year in another one', () => {
    const noon = new Date(2026, 10, 21, 12, 0, 5).getTime()
    assert.equal(formatTime(noon, noon + 60_000), '12:00:05')
    assert.equal(formatTime(noon, noon + 2 * 86_400_000), '21 Nov 12:00')
    assert.equal(formatTime(noon, new Date(2027, 0, 1).getTime()), '21 Nov 2026 12:00')
    assert.equal(formatTime(noon, new Date(2025, 10, 21).getTime()), '21 Nov 2026 12:00')
  })

  it('writes each month and hour as `Intl` does', () => {
    for (let i = 0; i < 24; i++) {
      const date = new Date(2026, i % 12, 1 + i, i, 59 - i, i)
      const day = date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
      const clock = date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
      assert.equal(formatTime(date.getTime(), 0), `${day} 2026 ${clock}`)
    }
  })
})

describe('formatExact', () => {
  it('has everything of the time, with the zone, and is the same moment', () => {
    const at = new Date(2026, 10, 27, 14, 3, 5, 7).getTime()
    const text = formatExact(at)
    assert.match(text, /^27 Nov 2026 14:03:05\.007 UTC[+-]\d\d:\d\d$/)
    assert.equal(Date.parse(text.replace('UTC', 'GMT')), at)
  })
})

describe('limitText', () => {
  it('names the window with its unit, and leaves other texts as they are', () => {
    assert.equal(limitText('web:*:100/60'), 'web:*: 100 in 1 min')
    assert.equal(limitText('pay:send:5000/86400 per user'), 'pay:send: 5,000 in 24 h per user')
    assert.equal(limitText('files:*:5/1.5 per tenant'), 'files:*: 5 in 1.5 s per tenant')
    assert.equal(limitText('files:a/b'), 'files:a/b')
  })
})

describe('count', () => {
  it('has a singular and a plural', () => {
    assert.deepEqual([count(1, 'more match'), count(2, 'more match')], ['1 more match', '2 more matches'])
    assert.deepEqual([count(0, 'tool'), count(1, 'tool'), count(2, 'tool')], ['0 tools', '1 tool', '2 tools'])
  })
})

describe('toSentence', () => {
  it('turns a clause into a sentence, and leaves a sentence unchanged', () => {
    assert.equal(toSentence('nothing listens on 127.0.0.1:4444'), 'Nothing listens on 127.0.0.1:4444.')
    assert.equal(toSentence('Start it.'), 'Start it.')
    assert.equal(toSentence(' '), '')
  })
})

describe('formatFor', () => {
  it('starts at one second', () => {
    assert.deepEqual(
      [formatFor(0, 20), formatFor(0, 59_900), formatFor(0, 180_000)],
      ['for 1 s', 'for 59 s', 'for 3 min'],
    )
  })
})

describe('formatNumber', () => {
  it('separates thousands', () => {
    assert.equal(formatNumber(100_000), '100,000')
  })

  it('writes numbers as `Intl` does', () => {
    for (const n of [0, 7, 999, 1000, 12_345.678_9, 1_234_567, -1, -1000, -999_999.5, 0.25, 2 ** 40, Number.NaN])
      assert.equal(formatNumber(n), n.toLocaleString('en-GB'))
  })
})

describe('instancesText', () => {
  it('counts the states that there are', () => {
    assert.equal(
      instancesText({ starting: 1, running: 0, idle: 12, down: 0 }),
      'an instance for each user: 12 idle, 1 starting',
    )
    assert.equal(instancesText({ starting: 0, running: 0, idle: 0, down: 0 }), 'an instance for each user: none yet')
  })
})
