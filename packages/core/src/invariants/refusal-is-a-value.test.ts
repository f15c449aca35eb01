import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { memoryAudit } from '../audit/memory.ts'
import type { CallRequest } from '../call/attempt.ts'
import { ToolgateError } from '@toolgate/values'
import { TERMINAL_EVENTS } from '../ports/ports.ts'
import { idOf, openWorld, viewOptionsOf, type World, worldArbitrary } from '../../../testing/support/worlds.ts'
import { runs } from '../../../testing/src/runs.ts'

const STATUSES: ReadonlySet<string> = new Set(['done', 'refused', 'waiting', 'failed'])

const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withObjectString: true,
  withSparseArray: true,
  withTypedArray: true,
  withUnicodeString: true,
})

/** Stands for what cannot be generated, as the generator looks at it. */
const TRAP: unique symbol = Symbol('throws at whatever is done with it')
const trapped: unknown = new Proxy(
  {},
  new Proxy(
    {},
    {
      get: () => () => {
        throw new Error('a trap')
      },
    },
  ),
)

/** Whatever a model or a client may put into a request, in whatever shape. */
const written = fc.record(
  {
    input: fc.oneof(anything, fc.constant(TRAP), fc.constant(circle())),
    callId: fc.oneof(fc.string({ unit: 'binary' }), anything),
    calledAs: fc.oneof(fc.string({ unit: 'binary' }), anything),
    malformed: fc.oneof(fc.constant(undefined), fc.string()),
    signal: fc.constantFrom(undefined, null, AbortSignal.abort(), AbortSignal.abort(null)),
    deadlineMs: fc.constantFrom(undefined, -1, 0, 1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
    run: fc.oneof(fc.constant(undefined), fc.record({ id: anything, step: anything, model: anything, app: anything })),
    nameOf: fc.constantFrom(
      undefined,
      (id: string) => `x__${id}`,
      throws as () => string,
      () => 7 as never,
    ),
  },
  { requiredKeys: [] },
)

/** A tool of the world, one that it may have had, or no name at all. */
function toolArbitrary({ tools }: World): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...tools.map(idOf)) },
    fc.string({ unit: 'binary' }),
    fc.constantFrom('__proto__', 'constructor', '*', 'files:*', 'group:g1', '', ' '.repeat(10_000), '\uD800'),
    anything,
    fc.constant(TRAP),
  )
}

const asked = worldArbitrary.chain((world) =>
  fc.record({
    world: fc.constant(world),
    requests: fc.array(
      fc.tuple(toolArbitrary(world), written).map(([tool, rest]) => ({ tool, ...rest })),
      { minLength: 1, maxLength: 4 },
    ),
  }),
)

describe('a refusal', () => {
  it('is a value, whatever is asked for and however: with a text, a decision and one record', async () => {
    await fc.assert(
      fc.asyncProperty(asked, async ({ world, requests }) => {
        const audit = memoryAudit()
        const { gate, root } = openWorld(world, { audit })
        const view = await gate.view(world.caller, viewOptionsOf(world))
        for (const request of requests) {
          const before = audit.records.length
          const outcome = await view.call(set(request))
          assert.ok(STATUSES.has(outcome.status))
          assert.equal(typeof outcome.text, 'string')
          assert.equal(typeof outcome.callId, 'string')
          if (outcome.status === 'refused') {
            assert.equal(typeof outcome.decision.reasons[0]?.code, 'string')
            assert.notEqual(outcome.text, '')
          }
          const left = audit.records.slice(before)
          assert.equal(left.filter(({ event }) => TERMINAL_EVENTS.has(event)).length, 1)
          assert.ok(left.every(({ tool }) => typeof tool === 'string' && tool.length <= 256))
        }
        await root.close()
      }),
      runs(400),
    )
  })

  it('of what is hidden is byte for byte that of what does not exist, however it is asked for', async () => {
    await fc.assert(
      fc.asyncProperty(asked, async ({ world, requests }) => {
        const { gate, ran } = openWorld({ ...world, policies: [{ deny: [{ match: ['*'] }] }] })
        const view = await gate.view(world.caller)
        for (const { tool: _, nameOf: __, signal: ___, ...rest } of requests) {
          const ask = async (tool: string) => (await view.call(set({ ...rest, tool, calledAs: 'asked' }))).text
          const hidden = idOf(world.tools[0] ?? assert.fail())
          assert.equal(await ask(hidden), await ask(`${hidden}-not`))
        }
        assert.equal(ran.size, 0)
      }),
      runs(60),
    )
  })

  const misuses: readonly (readonly [what: string, request: unknown])[] = [
    ['no request', undefined],
    ['a text for a request', 'pay'],
    ['a signal that is none', { tool: 'pay', signal: {} }],
    ['a signal that is a text', { tool: 'pay', signal: 'abort' }],
    ['a deadline that is no number', { tool: 'pay', deadlineMs: Number.NaN }],
    ['a deadline that is a text', { tool: 'pay', deadlineMs: '5' }],
    ['hooks that are none', { tool: 'pay', hooks: { beforeToolcall: () => {} } }],
  ]
  for (const [what, request] of misuses) {
    it(`is not the answer to a misuse by the host: ${what} is a fault with a code, and no attempt`, async () => {
      const audit = memoryAudit()
      const { gate, ran } = openWorld({ ...EMPTY, tools: [{ name: 'pay' }] }, { audit })
      const calling = (await gate.view({})).call(request as CallRequest)
      await assert.rejects(calling, (error) => error instanceof ToolgateError && error.code === 'config_invalid')
      assert.deepEqual([audit.records, ran.size], [[], 0])
      await gate.close()
    })
  }
})

const EMPTY: World = {
  tools: [],
  items: [],
  groups: {},
  policies: [],
  forks: [],
  up: [],
  opened: [],
  caller: {},
  visibility: undefined,
  activeTools: undefined,
  input: {},
}

/** Sets the traps. */
function set(request: Readonly<Record<string, unknown>>): CallRequest {
  const fields = Object.entries(request).map(([key, value]) => [key, value === TRAP ? trapped : value] as const)
  return Object.fromEntries(fields) as unknown as CallRequest
}

function throws(): never {
  throw new Error('broken')
}

function circle(): object {
  const one: { self?: unknown } = {}
  one.self = one
  return one
}
