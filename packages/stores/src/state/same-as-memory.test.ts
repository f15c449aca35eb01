import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { type ApprovalStore, memoryApprovals, memoryState, type StateStore } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/testing'
import fc from 'fast-check'
import { scratchFolder } from '../testing/scratch-folder.ts'
import { machineClock } from './machine.ts'
import { openSqliteStores } from './open-stores.ts'
import { runs } from '../../../testing/src/runs.ts'

const RUNS = runs(30, 1000)
const TTL_MS = 1000

type ApprovalStep =
  | { readonly kind: 'request'; readonly binding: number }
  | { readonly kind: 'approve' | 'reject' | 'consume' | 'giveBack' | 'get'; readonly nth: number }
  | { readonly kind: 'pass'; readonly ms: number }

const approvalStep: fc.Arbitrary<ApprovalStep> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('request' as const), binding: fc.nat(2) }) },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constantFrom('approve', 'approve', 'reject', 'consume', 'consume', 'giveBack', 'get'),
      nth: fc.nat(5),
    }),
  },
  // Back a little, back by more than is borne, and on.
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(1, 300, 999, -100, -9000) }),
  },
)

/** Returns what a store answers to each step, with its approvals by the order in which they were made. */
async function answersOf(store: ApprovalStore, steps: readonly ApprovalStep[]): Promise<readonly unknown[]> {
  const ids: string[] = []
  const answers: unknown[] = []
  let nowMs = 1_700_000_000_000
  for (const step of steps) {
    if (step.kind === 'pass') nowMs += step.ms
    else if (step.kind === 'request') {
      const { binding } = step
      const bound = { tenant: 't', user: 'u', tool: `${binding}`, definitionHash: 'd', inputHash: 'i', run: undefined }
      const { id, status, requestedAt } = await store.request(bound, { binding }, nowMs)
      if (!ids.includes(id)) ids.push(id)
      answers.push([ids.indexOf(id), status, requestedAt])
    } else answers.push(await answerOf(store, step.kind, ids[step.nth] ?? 'none', nowMs))
  }
  return answers
}

type OfOne = Exclude<ApprovalStep['kind'], 'request' | 'pass'>

async function answerOf(store: ApprovalStore, kind: OfOne, id: string, nowMs: number): Promise<unknown> {
  switch (kind) {
    case 'consume':
      return store.consume(id, nowMs)
    case 'giveBack':
      return store.giveBack(id)
    case 'get': {
      // What memory has forgotten by now, SQLite still shows as over.
      const status = (await store.get(id, nowMs))?.status
      return status === 'pending' || status === 'approved' ? status : 'over'
    }
    case 'approve':
    case 'reject':
      try {
        return (await store.decide(id, { decision: kind, by: 'ada', atMs: nowMs })).status
      } catch {
        return 'refused'
      }
  }
}

type StateStep = readonly ['set' | 'add' | 'take' | 'get' | 'list' | 'pass', string, number, boolean]

const stateStep: fc.Arbitrary<StateStep> = fc.tuple(
  fc.constantFrom('set', 'add', 'take', 'get', 'list', 'pass'),
  fc.constantFrom('a', 'b', 'ab', 'b\0', '🙂', '\uFFFD'),
  fc.nat(20),
  fc.boolean(),
)

async function statesOf(
  make: (clock: { wallMs(): number }) => StateStore,
  steps: readonly StateStep[],
): Promise<readonly unknown[]> {
  const clock = manualClock()
  const store = make(clock)
  const answers: unknown[] = []
  for (const [kind, key, n, expires] of steps) {
    const options = expires ? { expiresAt: clock.wallMs() + n } : undefined
    // Forward only: what has expired may be swept or not, and comes back where it was not if the clock goes back.
    if (kind === 'pass') clock.advance(n)
    else if (kind === 'set' || kind === 'add') answers.push(await store[kind](key, { n }, options))
    else answers.push(await store[kind](key))
  }
  return answers
}

describe('openSqliteStores beside memory', () => {
  it('gives the same answers about approvals, for any requests in any order, also if clocks go back', async (t) => {
    const folder = scratchFolder(t)
    let count = 0
    await fc.assert(
      fc.asyncProperty(fc.array(approvalStep, { maxLength: 30 }), async (steps) => {
        const { approvals, close } = openSqliteStores({
          path: join(folder, `${count++}.db`),
          approvals: { ttlMs: TTL_MS },
        })
        try {
          assert.deepEqual(
            await answersOf(approvals, steps),
            await answersOf(memoryApprovals({ ttlMs: TTL_MS }), steps),
          )
        } finally {
          close()
        }
      }),
      RUNS,
    )
  })

  it('gives the same answers about the state, for any requests in any order', async (t) => {
    const folder = scratchFolder(t)
    let count = 0
    await fc.assert(
      fc.asyncProperty(fc.array(stateStep, { maxLength: 40 }), async (steps) => {
        const closers: (() => void)[] = []
        const inSqlite = (clock: { wallMs(): number }) => {
          const stores = openSqliteStores({
            path: join(folder, `${count++}.db`),
            clock: { ...machineClock, wallMs: () => clock.wallMs() },
          })
          closers.push(stores.close)
          return stores.state
        }
        try {
          assert.deepEqual(await statesOf(inSqlite, steps), await statesOf((clock) => memoryState({ clock }), steps))
        } finally {
          for (const close of closers) close()
        }
      }),
      RUNS,
    )
  })
})
