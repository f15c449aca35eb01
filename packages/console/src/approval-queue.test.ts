import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { addFresh, type Card, matchesFilters, oldestFirst, toQueue } from './approval-queue.ts'
import type { Approval } from './wire.ts'

const NOW = 1_000_000
const NONE = new Map<string, Approval>()

describe('toQueue', () => {
  it('keeps the cards and their order when requests arrive, even older ones', () => {
    const shown = [[request('b', 20)], [request('c', 30)]]
    const pending = [request('e', 50), request('a', 10), ...shown.flat()]
    const { groups, fresh } = toQueue({ shown, pending, ended: NONE, nowMs: NOW })
    assert.deepEqual(statesOf(groups), [['b pending'], ['c pending']])
    assert.deepEqual(
      fresh.map(({ id }) => id),
      ['a', 'e'],
    )
  })

  it('keeps a card whose request has ended, with its result', () => {
    const shown = [[request('a', 1), request('b', 2)], [{ ...request('c', 3), expiresAt: NOW }], [request('d', 4)]]
    const approved: Approval = { ...request('a', 1), status: 'approved', decidedBy: 'olga' }
    const { groups } = toQueue({ shown, pending: [request('d', 4)], ended: new Map([['a', approved]]), nowMs: NOW })
    assert.deepEqual(statesOf(groups), [['a approved', 'b gone'], ['c expired'], ['d pending']])
    assert.equal(groups[0]?.[0]?.approval.decidedBy, 'olga')
  })

  it('shows a rejection that is not sent yet, unless somebody else has decided', () => {
    const [a, b] = [request('a', 1), request('b', 2)]
    const ended = new Map([['b', { ...b, status: 'approved' as const }]])
    const held = new Set(['a', 'b'])
    const { groups } = toQueue({ shown: [[a], [b]], pending: [a, b], ended, held, nowMs: NOW })
    assert.deepEqual(statesOf(groups), [['a held'], ['b approved']])
  })

  it('does not offer a decided request again because of an older list', () => {
    const a = request('a', 1)
    const ended = new Map([['a', { ...a, status: 'rejected' as const }]])
    assert.deepEqual(statesOf(toQueue({ shown: [[a]], pending: [a], ended, nowMs: NOW }).groups), [['a rejected']])
    assert.deepEqual(toQueue({ shown: [], pending: [a], ended, nowMs: NOW }).fresh, [])
  })
})

describe('addFresh', () => {
  it('groups equal requests, by whoever and from whichever run', () => {
    const other = { ...request('b', 2), user: 'admin', run: 'run-2' }
    assert.deepEqual(idsOf(addFresh([], [request('a', 1), other, { ...request('c', 3), inputHash: 'j' }])), [
      ['a', 'b'],
      ['c'],
    ])
  })

  it('keeps requests apart that differ in what a person decides on', () => {
    const differences: readonly Partial<Approval>[] = [
      { tool: 'files:move_file' },
      { tenant: 'acme' },
      { definitionHash: 'e' },
      { inputHash: 'j' },
      { why: 'the run has read private data' },
      { approver: { by: 'other' } },
      { asked: ['read mail'] },
      { edit: { by: 'ada', atMs: 1, input: { path: 'b' } } },
      { trail: { read: [{ label: 'untrusted', calls: [] }], sends: [] } },
      { trail: { read: [], sends: [], isUnknown: true } },
    ]
    const fresh = [request('a', 1), ...differences.map((one, i) => ({ ...request(`d${i}`, i + 2), ...one }))]
    assert.equal(addFresh([], fresh).length, differences.length + 1)
  })

  it('adds a request to a batch on the page only while one of it waits', () => {
    const [a, b] = [request('a', 1), { ...request('b', 2), inputHash: 'j' }]
    const groups: readonly (readonly Card<Approval>[])[] = [
      [{ approval: a, state: 'approved' }],
      [{ approval: b, state: 'pending' }],
    ]
    const fresh = [request('c', 3), { ...request('d', 4), inputHash: 'j' }]
    assert.deepEqual(idsOf(addFresh(groups, fresh)), [['a'], ['b', 'd'], ['c']])
  })
})

describe('the filters of approvals', () => {
  const acme = { ...request('a', 1), tenant: 'acme', run: 'run-1' }

  it('select requests that match all', () => {
    const filters = { tool: '', user: 'viewer', run: 'run-1', tenant: '', text: '' }
    assert.equal(matchesFilters(acme, filters), true)
    assert.equal(matchesFilters(request('b', 2), filters), false)
    assert.equal(matchesFilters(acme, { ...filters, tenant: 'other' }), false)
    assert.equal(matchesFilters({ ...acme, why: 'Money needs a person.' }, { ...filters, text: 'money' }), true)
    assert.equal(matchesFilters(acme, { ...filters, text: 'money' }), false)
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

function statesOf(groups: readonly (readonly Card<Approval>[])[]): readonly (readonly string[])[] {
  return groups.map((cards) => cards.map(({ approval, state }) => `${approval.id} ${state}`))
}

function idsOf(batches: readonly (readonly Approval[])[]): readonly (readonly string[])[] {
  return batches.map((batch) => batch.map(({ id }) => id))
}

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
