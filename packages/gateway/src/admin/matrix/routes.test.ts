import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { GroupRow } from '../../model/rows.ts'
import { toCell, toRows } from './routes.ts'

const TOOLS = [{ id: 'files:read' }, { id: 'files:write' }, { id: 'web:open' }]
const WEB: GroupRow = { name: 'web', visibility: 'conditional', available: false, tools: ['web:open', 'web:gone'] }

describe('the rows of the matrix', () => {
  it('are the groups, and the tools in no group by server', () => {
    assert.deepEqual(
      toRows(TOOLS, [WEB]).map(({ key, tools, members }) => [key, tools, ...members]),
      [
        ['group web', 2, 2],
        ['server files', 2, 0, 1],
      ],
    )
  })
})

describe('a cell of the matrix', () => {
  it('counts tools that are visible, that ask and that depend on more, and explains why the rest is hidden', () => {
    const decided = [
      { outcome: 'allow', visible: true, why: '', mayStill: [{ outcome: 'deny', on: 'input' }] },
      { outcome: 'ask', visible: true, why: 'a person decides', mayStill: [{ outcome: 'wait', on: 'now' }] },
      { outcome: 'wait', visible: false, why: 'the port is closed' },
      { outcome: 'deny', visible: false, why: 'policy' },
      { outcome: 'deny', visible: false, why: 'policy' },
    ] as const
    assert.deepEqual(toCell([0, 1], 2, decided), { visible: 2, total: 2, asks: 1, depends: 1, why: '' })
    assert.deepEqual(toCell([2, 3, 4], 3, decided), { visible: 0, total: 3, asks: 0, depends: 0, why: 'policy' })
    assert.deepEqual(toCell([], 1, decided), { visible: 0, total: 1, asks: 0, depends: 0, why: '' })
  })
})
