import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  emptyReach,
  offeredNames,
  toHaltBody,
  wordsOfForce,
  wordsOfReach,
  wordsOfStopped,
  wordsOfTarget,
} from './halts.ts'

describe('wordsOfTarget', () => {
  it('names each field in one order, or everything', () => {
    assert.equal(wordsOfTarget({ tool: 'files:*', user: 'vera' }), 'user vera, tool files:*')
    assert.equal(wordsOfTarget({ all: true }), 'everything')
  })
})

describe('wordsOfReach', () => {
  it('counts tools, and people if the target names any', () => {
    assert.equal(wordsOfReach({ tools: 1 }), '1 tool')
    assert.equal(wordsOfReach({ tools: 0, people: 0 }), 'nothing')
    assert.equal(wordsOfReach({ tools: 2, people: 1 }), '2 tools, 1 person')
  })
})

describe('wordsOfStopped', () => {
  it('counts the tools and calls that a halt would stop', () => {
    assert.equal(
      wordsOfStopped({ user: 'vera' }, { tools: 31, people: 1, underWay: 2 }),
      'This stops 31 tools, 1 person, 2 running calls.',
    )
  })

  it('never counts tools for a name that nobody has', () => {
    assert.equal(
      wordsOfStopped({ user: 'vear' }, { tools: 31, people: 0, nearestPeople: ['vera', 'verb'], underWay: 0 }),
      'This stops nothing now: nobody named vear was seen. Did you mean vera or verb?',
    )
    assert.equal(
      wordsOfStopped({ tenant: 'acmee' }, { tools: 31, people: 0, underWay: 0 }),
      'This stops nothing now: no user of acmee was seen.',
    )
  })
})

describe('wordsOfForce', () => {
  it('names the replicas that have not confirmed, and by when it is in force there', () => {
    const by = new Date(2026, 10, 23, 12, 0, 3).getTime()
    assert.equal(wordsOfForce({ replicas: 3, unconfirmed: [], by }), 'In force on all 3 replicas.')
    assert.equal(wordsOfForce({ replicas: 1, unconfirmed: [], by }), 'In force on 1 replica.')
    assert.equal(
      wordsOfForce({ replicas: 2, unconfirmed: ['r2'], by }),
      'Not confirmed by r2; in force there by 12:00:03 at the latest.',
    )
  })
})

describe('offeredNames', () => {
  it('offers each name once, first those that begin with the typed text', () => {
    assert.deepEqual(offeredNames(['oliver', 'vera', 'Vera', 'omar', 'vera'], 'VER'), ['vera', 'Vera', 'oliver'])
    assert.deepEqual(offeredNames(['vera'], 'x'), [])
  })

  it('offers at most 20', () => {
    const names = Array.from({ length: 100 }, (_, i) => `user-${i}`)
    assert.equal(offeredNames(names, '').length, 20)
  })
})

describe('emptyReach', () => {
  it('says why a halt matches nothing now, and suggests a name', () => {
    assert.equal(
      emptyReach({ target: { tool: 'files:raed' }, reach: { tools: 0, nearestTools: ['files:read'] } }),
      'no tool is files:raed. Did you mean files:read?',
    )
    assert.equal(
      emptyReach({ target: { user: 'vear', tenant: 'acme' }, reach: { tools: 3, people: 0 } }),
      'nobody named vear of acme was seen.',
    )
    assert.equal(emptyReach({ target: { all: true }, reach: { tools: 0 } }), 'there are no tools.')
  })

  it('is undefined for a halt that matches something', () => {
    assert.equal(emptyReach({ target: { user: 'vera' }, reach: { tools: 3, people: 1 } }), undefined)
  })
})

describe('toHaltBody', () => {
  const ask = (form: Record<string, string>) => toHaltBody(new Map(Object.entries(form)))

  it('returns the filled-in fields, trimmed', () => {
    assert.deepEqual(ask({ user: ' vera ', tool: '', reason: ' stolen phone ' }), {
      body: { user: 'vera', reason: 'stolen phone' },
    })
    assert.deepEqual(ask({ all: 'on', user: '', reason: 'fire' }), { body: { all: true, reason: 'fire' } })
  })

  it('requires a target, and no reason', () => {
    assert.deepEqual(ask({ user: ' ', reason: 'r' }), { problem: 'Fill in a field, or choose everything.' })
    assert.deepEqual(ask({ all: 'on', user: 'vera', reason: 'r' }), {
      problem: 'Everything cannot be combined with other fields.',
    })
    assert.deepEqual(ask({ user: 'vera', reason: ' ' }), { body: { user: 'vera' } })
  })
})
