import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createGate, type Gate } from '../gate/gate.ts'
import { countsOf } from '../gate/view-of.ts'
import type { ParsedClause } from '../policy/parse.ts'
import type { Policy } from '../policy/policy.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { defineTool } from '../tools/tool.ts'
import { Coverage } from './coverage.ts'
import type { Decided } from './decide.ts'

const NAMES = ['mail', 'read', 'write']
const BITS = ['a', 'b', 'c', 'd', 'e']
const tools = NAMES.map((name) => defineTool({ name, execute: () => name }))
const CALLERS = [
  { user: 'vera', roles: ['viewer'] },
  { user: 'ada', roles: ['admin'] },
]
/** Of the clauses about the input any set can hold, so that there are more sets than are kept for a tool. */
const shadow: Policy = {
  name: 'shadow',
  mode: 'shadow',
  ask: BITS.map((bit) => ({ match: '*', input: `input.${bit}` })),
  deny: [{ match: 'write', unless: "'admin' in caller.roles" }],
}
const POLICIES: readonly (readonly Policy[])[] = [
  [{ name: 'team', allow: ['read', { match: '*', input: 'input.a || input.b' }] }, shadow],
  [shadow, { name: 'team', allow: [{ match: '*', input: 'input.a || input.b' }], deny: ['mail'] }],
  [{ allow: [{ match: '*', when: "'admin' in caller.roles" }, '*'] }],
]

type Kind = 'call' | 'narrowed' | 'view' | 'reload' | 'read' | 'told'
type Op = readonly [kind: Kind, tool: number, bits: number, other: number]

/** Mostly calls: some runs have more sets and more unread calls than are kept. */
const kinds = fc.oneof(
  { weight: 80, arbitrary: fc.constant<Kind>('call') },
  ...(['narrowed', 'view', 'reload', 'read', 'told'] as const).map((kind) => ({
    weight: 1,
    arbitrary: fc.constant<Kind>(kind),
  })),
)
const ops: fc.Arbitrary<Op[]> = fc.array(
  fc.tuple(kinds, fc.nat(NAMES.length - 1), fc.nat(2 ** BITS.length - 1), fc.nat()),
  { maxLength: 400, size: 'max' },
)

interface Sum {
  hits: number
  lastHitAt: number
}

/** Counts each decision by itself, in a `Coverage` of its own: nothing is found again and nothing is put off. */
function addTo(sums: Map<string, Sum>, decided: Decided, held: readonly ParsedClause[], nowMs: number): void {
  const { bounds } = decided
  const alone = new Coverage(() => 0)
  alone.follow(bounds.policies.map(({ whole }) => whole))
  alone.count({ ...decided, bounds: { ...bounds, tallies: undefined } }, held, nowMs)
  for (const { id, hits } of alone.untold()) {
    if (hits === 0) continue
    sums.set(id, { hits: (sums.get(id)?.hits ?? 0) + hits, lastHitAt: nowMs })
  }
}

function watch(gate: Gate): { readonly counts: Coverage; readonly sums: ReadonlyMap<string, Sum> } {
  const counts = countsOf(gate) as Coverage
  const sums = new Map<string, Sum>()
  counts.count = (decided, held, nowMs) => {
    addTo(sums, decided, held, nowMs)
    Coverage.prototype.count.call(counts, decided, held, nowMs)
  }
  return { counts, sums }
}

async function play(steps: readonly Op[]): Promise<void> {
  const clock = manualClock()
  const gate = createGate({ tools, clock, policy: POLICIES[0] as readonly Policy[] })
  const { counts, sums } = watch(gate)
  const views = await Promise.all(CALLERS.map((caller) => gate.view(caller)))
  const told = new Map<string, number>()
  const check = () => {
    for (const { id, hits, lastHitAt } of gate.coverage())
      assert.deepEqual({ hits, lastHitAt }, sums.get(id) ?? { hits: 0, lastHitAt: undefined })
    const untold = counts.untold().filter(({ hits }) => hits > 0)
    const expected = [...sums].map(([id, { hits }]) => [id, hits - (told.get(id) ?? 0)] as const)
    assert.deepEqual(
      new Map(untold.map(({ id, hits }) => [id, hits])),
      new Map(expected.filter(([, hits]) => hits > 0)),
    )
  }
  for (const [op, at, bits, other] of steps) {
    clock.advance(1)
    const i = other % CALLERS.length
    const view = views[i]
    const call = {
      tool: NAMES[at] as string,
      input: Object.fromEntries(BITS.map((bit, n) => [bit, (bits & (1 << n)) !== 0])),
    }
    if (op === 'call') await view?.call(call)
    else if (op === 'narrowed') await view?.narrow({ policy: { deny: [{ match: '*', input: 'input.c' }] } }).call(call)
    else if (op === 'view') views[i] = await gate.view(CALLERS[i] as object)
    else if (op === 'reload') gate.setPolicy(POLICIES[other % POLICIES.length] as readonly Policy[])
    else if (op === 'read') check()
    else {
      for (const { id, hits } of counts.untold()) told.set(id, (told.get(id) ?? 0) + hits)
      counts.told(counts.untold())
    }
  }
  check()
}

describe('Coverage', () => {
  it('counts as if each call were counted by itself, over views, reloads and readings', () =>
    fc.assert(fc.asyncProperty(ops, play), { numRuns: 40, endOnFailure: true }))
})
