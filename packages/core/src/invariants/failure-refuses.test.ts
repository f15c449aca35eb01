import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import type { AuditSink, StateStore } from '../ports/ports.ts'
import { memoryState } from '../memory/state.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import { memoryCounters } from '../memory/counters.ts'
import { systemClock } from '../memory/clock.ts'

import { defineTool } from '../tools/tool.ts'
import { runs } from '../../../testing/src/runs.ts'

/** Of whatever is waited for. */
const DEADLINE_MS = 3

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
  fc.constant(() => new Promise(() => {})),
  fc.constant(
    () =>
      new Promise((_, reject) => {
        setTimeout(() => reject(new Error('too late')), 2 * DEADLINE_MS)
      }),
  ),
  // oxlint-disable-next-line unicorn/no-thenable -- what somebody may answer
  fc.constantFrom({ then: () => {} }, { then: fail }).map((thenable) => () => thenable),
)

function fail(): never {
  throw new Error('broken')
}

const NAMES = ['a', 'b', 'c'] as const

/** Gates whose tools count: the witness that nothing ran. */
function makeGate(options: Omit<GateOptions, 'tools'>) {
  const ran = { count: 0 }
  const tools = NAMES.map((name) => defineTool({ name, tags: ['t'], execute: () => ++ran.count }))
  const audit = memoryAudit()
  const deadlines = { storeDeadlineMs: DEADLINE_MS, hookDeadlineMs: DEADLINE_MS, visibilityDeadlineMs: DEADLINE_MS }
  return { gate: createGate({ tools, audit, ...deadlines, ...options }), ran, audit }
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
    const stores = fc.constantFrom('counters.take', 'counters.peek', 'approvals.request', 'approvals.consume')
    await fc.assert(
      fc.asyncProperty(stores, anyFailure, async (which, failure) => {
        const clock = systemClock
        const counters = memoryCounters({ clock })
        const approvals = memoryApprovals()
        const method = which.split('.')[1] as string
        const broken = { [method]: failure }
        const { gate, ran, audit } = makeGate({
          clock,
          counters: which.startsWith('counters') ? { ...counters, ...broken } : counters,
          approvals: which.startsWith('approvals') ? { ...approvals, ...broken } : approvals,
          limits: '*:5/60',
          ...(which === 'counters.take' ? {} : { policy: { ask: ['tag:t'] } }),
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

  it('refuses the call, with one last record, where it is a hook, whichever and wherever it stands', async () => {
    const places = fc.constantFrom('gate', 'fork', 'call')
    const others = fc.array(fc.constantFrom(undefined, { allow: true }, { input: { n: 1 } }), { maxLength: 2 })
    // To say nothing, or an object that says nothing, is to have nothing against the call.
    const failures = anyFailure.filter((failure) => !isSilent(quietly(failure)))
    await fc.assert(
      fc.asyncProperty(places, failures, others, others, async (place, failure, first, last) => {
        const answering = (answer: object | undefined) => ({ beforeToolCall: () => answer })
        const broken = { beforeToolCall: failure as () => undefined }
        const hooks = [...first.map(answering), broken, ...last.map(answering)]
        const { gate, ran, audit } = makeGate(place === 'gate' ? { hooks } : {})
        const view = await (place === 'fork' ? gate.fork({ hooks }) : gate).view({ user: 'vera' })
        const outcome = await view.call({ tool: 'a', ...(place === 'call' ? { hooks } : {}) })
        assert.ok(outcome.status === 'refused')
        assert.equal(outcome.decision.reasons[0]?.code, 'hook_error')
        assert.deepEqual([ran.count, audit.records.length], [0, 1])
      }),
      runs(150),
    )
  })

  it('refuses the call, with one last record, where it is the record of its intent', async () => {
    const failures = anyFailure.filter((failure) => quietly(failure) !== undefined || throwsIt(failure))
    await fc.assert(
      fc.asyncProperty(failures, async (failure) => {
        const audit = memoryAudit()
        const write: AuditSink['write'] = (entry) =>
          entry.event === 'tool_call' ? (failure() as undefined) : audit.write(entry)
        const { gate, ran } = makeGate({ audit: { ...audit, write } })
        const outcome = await (await gate.view({ user: 'vera' })).call({ tool: 'a' })
        // A promise of anything is one that it was written.
        const isWritten = (await settledQuietly(failure)) === 'fulfilled'
        assert.deepEqual([outcome.status, ran.count], isWritten ? ['done', 1] : ['refused', 0])
        assert.equal(audit.records.length, 1)
      }),
      runs(60),
    )
  })

  it('refuses the call where it is the validator', async () => {
    const failures = anyFailure.filter((failure) => quietly(failure) !== undefined || throwsIt(failure))
    await fc.assert(
      fc.asyncProperty(failures, async (failure) => {
        const { outcomes, ran, records } = await callAll({ validateInput: failure as () => undefined })
        assert.ok(outcomes.every(({ status }) => status === 'refused'))
        assert.deepEqual([ran.count, records.length], [0, NAMES.length])
      }),
      runs(60),
    )
  })

  it('holds every tool back where it is the store of halts or pins, and nothing is known yet', async () => {
    const failures = anyFailure.filter((failure) => !Array.isArray(quietly(failure)))
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('halt:', 'pin:'), failures, async (which, failure) => {
        const kept = memoryState()
        const list: StateStore['list'] = (prefix) => (prefix === which ? (failure() as []) : kept.list(prefix))
        const { gate, ran, audit } = makeGate({ state: { ...kept, list }, pins: 'suspend' })
        const view = await gate.view({ user: 'vera' })
        assert.deepEqual(view.ids, [])
        const outcome = await view.call({ tool: 'a' })
        assert.deepEqual([outcome.status, ran.count, audit.records.length], ['refused', 0, 1])
        await gate.close()
      }),
      runs(60),
    )
  })

  it('lets no more run than may where what runs never ends', async () => {
    const cap = fc.record({ max: fc.integer({ min: 1, max: 2 }), waitMs: fc.constantFrom(0, 1) })
    await fc.assert(
      fc.asyncProperty(cap, async ({ max, waitMs }) => {
        const stuck = defineTool({ name: 'stuck', execute: () => new Promise(() => {}) })
        const gate = createGate({ tools: [stuck], concurrency: [{ match: 'stuck', max, waitMs }] })
        const view = await gate.view({})
        const running = Array.from({ length: max }, () => view.call({ tool: 'stuck' }))
        const outcome = await view.call({ tool: 'stuck' })
        assert.ok(outcome.status === 'refused')
        assert.equal(outcome.decision.reasons[0]?.code, 'too_busy')
        await gate.close()
        for (const { status } of await Promise.all(running)) assert.equal(status, 'failed')
      }),
      runs(10),
    )
  })
})

/** Whether a hook that answers so has said nothing. */
function isSilent(given: unknown): boolean {
  return given === undefined || (isPlain(given) && Object.keys(given).length === 0)
}

function isPlain(given: unknown): given is object {
  return typeof given === 'object' && given !== null && Object.getPrototypeOf(given) === Object.prototype
}

function throwsIt(failure: () => unknown): boolean {
  try {
    quietlyHeard(failure())
    return false
  } catch {
    return true
  }
}

function quietlyHeard(given: unknown): void {
  if (given instanceof Promise) given.catch(() => {})
}

/** How an answer settles in time, where it is a promise. */
async function settledQuietly(failure: () => unknown): Promise<'fulfilled' | 'otherwise'> {
  const given = quietly(failure)
  if (!(given instanceof Promise)) return 'otherwise'
  const late = new Promise<'otherwise'>((resolve) => {
    setTimeout(() => resolve('otherwise'), DEADLINE_MS)
  })
  return Promise.race([given.then(() => 'fulfilled' as const).catch(() => 'otherwise' as const), late])
}

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
