import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toExposition } from './exposition.ts'

describe('toExposition', () => {
  it('writes help, type and samples, one a line', () => {
    assert.equal(
      toExposition([
        { name: 'a_total', type: 'counter', help: 'How many.', samples: [{ labels: { b: 'x', c: 'y' }, value: 2 }] },
        { name: 'd', type: 'gauge', help: 'How much.', samples: [{ value: 0.5 }] },
        { name: 'e', type: 'histogram', help: 'How long.', samples: [{ suffix: '_count', value: 3 }] },
        { name: 'f', type: 'gauge', help: 'None yet.', samples: [] },
      ]),
      '# HELP a_total How many.\n# TYPE a_total counter\na_total{b="x",c="y"} 2\n' +
        '# HELP d How much.\n# TYPE d gauge\nd 0.5\n' +
        '# HELP e How long.\n# TYPE e histogram\ne_count 3\n' +
        '# HELP f None yet.\n# TYPE f gauge\n',
    )
  })

  it('lets no value of a label or text of help break out of its place', () => {
    const evil = 'x"} 1\nevil_metric 9\\'
    const text = toExposition([{ name: 'a', type: 'gauge', help: evil, samples: [{ labels: { b: evil }, value: 1 }] }])
    assert.equal(text, '# HELP a x"} 1\\nevil_metric 9\\\\\n# TYPE a gauge\na{b="x\\"} 1\\nevil_metric 9\\\\"} 1\n')
    const lone = toExposition([
      { name: 'a', type: 'gauge', help: '', samples: [{ labels: { b: '\ud800' }, value: 1 }] },
    ])
    assert.match(lone, /\ufffd/)
  })

  it('writes NaN and infinities as the format does', () => {
    const samples = [Number.NaN, Infinity, -Infinity, 1e21, 1e-7].map((value) => ({ value }))
    const lines = toExposition([{ name: 'a', type: 'gauge', help: '', samples }])
      .split('\n')
      .slice(2, -1)
    assert.deepEqual(lines, ['a NaN', 'a +Inf', 'a -Inf', 'a 1e+21', 'a 1e-7'])
  })

  it('refuses a name that the format does not have', () => {
    for (const name of ['', '1a', 'a b', 'a\n', 'größe'])
      assert.throws(() => toExposition([{ name, type: 'gauge', help: '', samples: [] }]), RangeError)
    assert.throws(
      () => toExposition([{ name: 'a', type: 'gauge', help: '', samples: [{ labels: { 'b"': 'c' }, value: 1 }] }]),
      RangeError,
    )
  })
})
