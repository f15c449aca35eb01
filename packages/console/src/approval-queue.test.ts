import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { oldestFirst, toQueue } from './approval-queue.ts'
import type { Approval } from './wire.ts'

const NOW = 1_000_000

describe('toQueue', () => {
  it('keeps the cards and their order when requests arrive, even older ones', () => {
    const shown = [request('b', 20), request('c', 30)]
    const { cards, fresh } = toQueue({
      shown,
      pending: [request('e', 50), request('a', 10), ...shown],
      ended: new Map(),
      nowMs: NOW,
    })
    assert.deepEqual(
      cards.map(({ approval, state }) => [approval.id, state]),
      [
        ['b', 'pending'],
        ['c', 'pending'],
      ],
    )
    assert.deepEqual(
      fresh.map(({ id }) => id),
      ['a', 'e'],
    )
  })

  it('keeps a card whose request has ended, with its result', () => {
    const shown = [request('a', 1), request('b', 2), { ...request('c', 3), expiresAt: NOW }, request('d', 4)]
    const approved: Approval = { ...request('a', 1), status: 'approved', decidedBy: 'olga' }
    const { cards } = toQueue({ shown, pending: [request('d', 4)], ended: new Map([['a', approved]]), nowMs: NOW })
    assert.deepEqual(
      cards.map(({ state, approval }) => [state, approval.decidedBy]),
      [
        ['approved', 'olga'],
        ['gone', undefined],
        ['expired', undefined],
        ['pending', undefined],
      ],
    )
  })

  it('does not offer a decided request again because of an older list', () => {
    const a = request('a', 1)
    const ended = new Map([['a', { ...a, status: 'rejected' as const }]])
    assert.equal(toQueue({ shown: [a], pending: [a], ended, nowMs: NOW }).cards[0]?.state, 'rejected')
    assert.deepEqual(toQueue({ shown: [], pending: [a], ended, nowMs: NOW }).fresh, [])
  })
})

describe('oldestFirst', () => {
  it('sorts by the time of the request, then by id', () => {
    assert.deepEqual(
      oldestFirst([request('c', 2), request('b', 1), request('a', 2)]).map(({ id }) => id),
      ['b', 'a', 'c'],
    )
  })
})

function request(id: string, requestedAt: number): Approval {
  return {
    id,
    requestedAt,
    status: 'pending',
    tool: 'files:write_file',
    user: 'viewer',
    tenant: undefined,
    run: undefined,
    definitionHash: 'd',
    inputHash: 'i',
    input: {},
    expiresAt: NOW + 60_000,
  }
}
