import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AuditRecord } from '@toolgate/core/audit'
import { type Evidence, judge } from './fault-judge.ts'

type Part = Partial<AuditRecord> & Pick<AuditRecord, 'event'>

const recordsOf = (...parts: readonly Part[]) => parts as readonly AuditRecord[]
const call = (n: number): readonly Part[] => [
  { event: 'tool_call', tool_call_id: `c${n}`, input_preview: `{"n":${n}}` },
  { event: 'tool_result', tool_call_id: `c${n}` },
]

/** One plain call, one of a limited tool and one that was approved. */
const GOOD: Evidence = {
  executed: [
    { tool: 'note', n: 1 },
    { tool: 'limited', n: 2 },
    { tool: 'pay', n: 3 },
  ],
  records: recordsOf(...call(1), ...call(2), ...call(3)),
  acknowledged: [1, 2, 3],
  approved: new Map([[3, 1]]),
  halted: [4],
  limits: new Map([['limited', 1]]),
  findings: [],
}

const brokenBy = (change: Partial<Evidence>) => judge({ ...GOOD, ...change }).map(({ promise }) => promise)

describe('judge', () => {
  it('finds nothing where every promise is kept', () => assert.deepEqual(judge(GOOD), []))

  for (const [what, change, promise] of [
    ['a call without an intent', { records: recordsOf(...call(1), ...call(2)), acknowledged: [] }, 'durable intent'],
    [
      'a second call for one intent',
      { executed: [...GOOD.executed, { tool: 'pay', n: 3 }], approved: new Map([[3, 2]]) },
      'durable intent',
    ],
    [
      'an acknowledged call that was not executed',
      { executed: GOOD.executed.slice(1) },
      'no acknowledged call is lost',
    ],
    [
      'an acknowledged call without a result',
      {
        records: recordsOf(...call(1), ...call(2), ...call(3).slice(0, 1), {
          event: 'tool_abandoned',
          tool_call_id: 'c3',
        }),
      },
      'no acknowledged call is lost',
    ],
    [
      'an intent without an end',
      { records: recordsOf(...call(1), ...call(2), ...call(3).slice(0, 1)), acknowledged: [1] },
      'one end',
    ],
    [
      'a call that ran twice',
      {
        executed: [...GOOD.executed, { tool: 'note', n: 1 }],
        records: recordsOf(...call(1), ...call(1), ...call(2), ...call(3)),
      },
      'at most once',
    ],
    ['a call that nobody approved', { approved: new Map() }, 'at most once'],
    ['a use beyond a limit', { limits: new Map([['limited', 0]]) }, 'no limit'],
    ['a call of a halted tool', { halted: [1] }, 'halted'],
    ['a finding', { findings: [{ kind: 'missing', text: 'Record 2 is missing.' }] }, 'verifies'],
  ] as const satisfies readonly (readonly [string, Partial<Evidence>, string])[])
    it(`finds ${what}`, () => {
      const [first, ...more] = brokenBy(change)
      assert.match(first ?? '', new RegExp(promise))
      assert.deepEqual(more, [])
    })
})
