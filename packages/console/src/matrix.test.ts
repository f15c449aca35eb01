import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toCell, toColumn, toRows } from './matrix.ts'
import type { OutcomeWord, ToolRow } from './wire.ts'

const TOOLS = [tool('files:read', 'allow'), tool('files:write', 'ask'), tool('web:open', 'wait', 'the port is closed')]

describe('toRows', () => {
  it('has the groups, and the tools in no group by server', () => {
    const group = { name: 'web', visibility: 'conditional', available: false, tools: ['web:open'] } as const
    assert.deepEqual(
      toRows({ tools: TOOLS, groups: [group] }).map(({ key, tools }) => [key, ...tools]),
      [
        ['group web', 'web:open'],
        ['server files', 'files:read', 'files:write'],
      ],
    )
  })
})

describe('toCell', () => {
  it('counts the visible tools and those that ask, and says why the rest is hidden', () => {
    const column = toColumn('vera', [...TOOLS, tool('web:a', 'deny', 'policy'), tool('web:b', 'deny', 'policy')])
    assert.deepEqual(toCell(column, ['files:read', 'files:write']), { visible: 2, total: 2, asks: 1, why: '' })
    assert.deepEqual(toCell(column, ['web:open', 'web:a', 'web:b']), { visible: 0, total: 3, asks: 0, why: 'policy' })
  })

  it('counts a tool that is not in the caller’s list as hidden', () => {
    assert.deepEqual(toCell(toColumn('vera', []), ['gone']), { visible: 0, total: 1, asks: 0, why: '' })
  })
})

function tool(id: string, outcome: OutcomeWord, why?: string): ToolRow {
  return {
    id,
    kind: 'tool',
    wireName: '',
    description: '',
    tags: [],
    outcome,
    visible: outcome === 'allow' || outcome === 'ask',
    reasons: why === undefined ? [] : [{ layer: 'policy', code: 'policy_denied', outcome, order: 0, text: why }],
  }
}
