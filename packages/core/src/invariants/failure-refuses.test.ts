import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { memoryAudit } from '../audit/memory.ts'
import { createGate, type GateOptions } from '../gate.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import { memoryCounters } from '../memory/counters.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { runs } from '../testing/worlds.ts'
import { defineTool } from '../tools/tool.ts'

/** Everything that is no answer: what is thrown, and what is given instead of one. */
const anyFailure: fc.Arbitrary<() => unknown> = fc.oneof(
  fc.constantFrom('a text', undefined, null, new Error('broken'), Object.create(null)).map((thrown) => () => {
    throw thrown
  }),
  fc
    .constantFrom<unknown>(undefined, null, 0, 1, 'true', 'allow!', {}, [], Number.NaN)
    .map((nonsense) => () => nonsense),
  fc.constant(() => Promise.resolve('yes')),
  fc.constant(() => Promise.reject(new Error('late'))),
)

const NAMES = ['a', 'b', 'c'] as const

/** Gates whose tools count: the witness that nothing ran. */
function makeGate(options: Omit<GateOptions, 'tools'>) {
  const ran = { count: 0 }
  const tools = NAMES.map((name) => defineTool({ name, tags: ['t'], execute: () => ++ran.count }))
  const audit = memoryAudit()
  return { gate: createGate({ tools, audit, ...options }), ran, audit }
}

async function callAll(options: Omit<GateOptions, 'tools'>) {
  const { gate, ran, audit } = makeGate(options)
  const view = await gate.view({ user: 'vera' })
  const outcomes = await Promise.all(NAMES.map((tool) => view.call({ tool, input: {} })))
  return { view, ran, outcomes, records: audit.records }
}

describe('what fails', () => {
  it('denies where it is a condition of a deny or an ask, and does not hold where it is one of an allow', async () => {
    const kinds = fc.constantFrom('deny', 'ask', 'allow')
    const fields = fc.constantFrom('when', 'input')
    await fc.assert(
      fc.asyncProperty(kinds, fields, anyFailure, async (kind, field, failure) => {
        const policy = { [kind]: [{ match: 'tag:t', [field]: failure as () => boolean }] }
        const { view, ran, outcomes } = await callAll({ policy })
        assert.ok(outcomes.every(({ status }) => status === 'refused'))
        assert.equal(ran.count, 0)
        if (field === 'when') assert.deepEqual(view.ids, [])
        const codes = new Set(NAMES.map((name) => view.explain(name).reasons[0]?.code))
        if (field === 'when') assert.deepEqual([...codes], [kind === 'allow' ? 'policy_not_allowed' : 'policy_error'])
      }),
      runs(150),
    )
  })

  it('exempts nobody where it is an unless', async () => {
    await fc.assert(
      fc.asyncProperty(anyFailure, async (failure) => {
        const policy = { deny: [{ match: 'tag:t', unless: failure as () => boolean }] }
        const { view, ran } = await callAll({ policy })
        assert.deepEqual([view.ids, ran.count], [[], 0])
      }),
      runs(60),
    )
  })

  it('denies where it is a policy that is a function', async () => {
    await fc.assert(
      fc.asyncProperty(anyFailure, async (failure) => {
        const { view, ran } = await callAll({ policy: { decide: failure as () => 'deny' } })
        assert.deepEqual([view.ids, ran.count], [[], 0])
        assert.equal(view.explain('a').reasons[0]?.code, 'policy_error')
      }),
      runs(60),
    )
  })

  it('leaves an empty view that says so where it is a visibility', async () => {
    const thrown = anyFailure.filter((failure) => !Array.isArray(quietly(failure)))
    await fc.assert(
      fc.asyncProperty(thrown, async (failure) => {
        const { gate, ran } = makeGate({})
        const view = await gate.view({ user: 'vera' }, { visibility: failure as () => string[] })
        assert.deepEqual(view.ids, [])
        assert.notEqual(view.failure, undefined)
        const outcome = await view.call({ tool: 'a' })
        assert.deepEqual([outcome.status, ran.count], ['refused', 0])
      }),
      runs(60),
    )
  })

  it('refuses the call, with one last record, where it is a store', async () => {
    const stores = fc.constantFrom('counters.take', 'approvals.request', 'approvals.consume')
    await fc.assert(
      fc.asyncProperty(stores, anyFailure, async (which, failure) => {
        const clock = manualClock()
        const counters = memoryCounters({ clock })
        const approvals = memoryApprovals()
        const method = which.split('.')[1] as string
        const broken = { [method]: failure }
        const { gate, ran, audit } = makeGate({
          clock,
          counters: which.startsWith('counters') ? { ...counters, ...broken } : counters,
          approvals: which.startsWith('approvals') ? { ...approvals, ...broken } : approvals,
          limits: '*:5/60',
          ...(which.startsWith('approvals') ? { policy: { ask: ['tag:t'] } } : {}),
        })
        const view = await gate.view({ user: 'vera' })
        if (which === 'approvals.consume') {
          await view.call({ tool: 'a' })
          const [pending] = await gate.approvals.list()
          await gate.approvals.decide({ user: 'vera' }, pending?.id ?? '', { decision: 'approve' })
        }
        const before = audit.records.length
        const outcome = await view.call({ tool: 'a' })
        assert.notEqual(outcome.status, 'done')
        assert.deepEqual([ran.count, audit.records.length], [0, before + 1])
      }),
      runs(150),
    )
  })
})

/** What a failure gives, if it gives something. */
function quietly(failure: () => unknown): unknown {
  try {
    const given = failure()
    if (given instanceof Promise) given.catch(() => {})
    return given
  } catch {
    return undefined
  }
}
