import { type Caller, createGate, type Gate, type Policy } from '@toolgate/core'
import { type Case, digits, measure, printTable } from './lib.ts'
import { makeTools } from './tools.ts'

/**
 * How the cost of each thing grows when there is ten times as much of something else.
 *
 * At most linear: ten times as much costs at most ten times as much, with half as much again for the noise of a
 * shared machine and for what no longer fits its caches.
 */
const LINEAR = 10
const NOISE = 1.5

interface Kind {
  readonly what: string
  /** Gives what is to be measured at one size. */
  readonly at: (size: number) => Case['run']
}

const INPUT = Object.freeze({ path: '/workspace/a.txt' })
const TOOL = 'server0:read_thing_0'
const POLICY: Policy = {
  deny: ['tag:danger', { match: '*:delete_*', unless: "'admin' in caller.roles" }],
  ask: ['*:send_*'],
}

let next = 0
let sink = 0
const worse: string[] = []

/** A caller whom the gate has not met. */
function stranger(): Caller {
  return { user: `user-${next++}`, roles: ['viewer'], attributes: { team: 'sales' } }
}

async function growth(title: string, sizes: readonly number[], kinds: readonly Kind[]): Promise<void> {
  const figures = await measure(
    kinds.flatMap(({ what, at }) => sizes.map((size) => ({ name: `${what} ${size}`, run: at(size) }))),
    // Factors of ten need less care than figures, and there are many of them: the cheapest round is taken.
    { rounds: 3, roundMs: 10 },
  )
  const rows = kinds.map(({ what }, row) => {
    const costs = sizes.map((_, i) => figures[row * sizes.length + i]?.lowUs ?? Number.NaN)
    const factors = costs.slice(1).map((us, i) => us / (costs[i] as number))
    const steepest = Math.max(...factors)
    const isLinear = steepest <= LINEAR * NOISE
    if (!isLinear) worse.push(`${title}: ${what}`)
    return [what, ...costs.map(digits), digits(steepest), isLinear ? 'yes' : 'NO']
  })
  const head = ['µs CPU', ...sizes.map((size) => size.toLocaleString('en')), 'steepest × per 10 ×', 'at most linear']
  printTable(title, head, rows)
}

const once =
  (run: () => Promise<unknown>): Case['run'] =>
  async (count) => {
    for (let i = 0; i < count; i++) await run()
  }

/** What one gate is asked, whatever it is that grows. */
function kindsOf(gateOf: (size: number) => Gate): readonly Kind[] {
  const gates = new Map<number, Gate>()
  const gateAt = (size: number): Gate => {
    const gate = gates.get(size) ?? gateOf(size)
    gates.set(size, gate)
    return gate
  }
  const viewAt = (size: number) => gateAt(size).view({ user: 'vera', roles: ['viewer'], attributes: { team: 'sales' } })
  return [
    {
      what: 'a view for a new caller',
      at: (size) => once(async () => (sink += Number((await gateAt(size).view(stranger())).has(TOOL)))),
    },
    {
      what: 'and its list of ids',
      at: (size) => once(async () => (sink += (await gateAt(size).view(stranger())).ids.length)),
    },
    {
      what: 'deciding one tool',
      at: (size) => async (count) => {
        const view = await viewAt(size)
        for (let i = 0; i < count; i++) if (view.has(TOOL)) sink++
      },
    },
    {
      what: 'explaining one tool',
      at: (size) => async (count) => {
        const view = await viewAt(size)
        for (let i = 0; i < count; i++) sink += view.explain('server6:delete_thing_6').reasons.length
      },
    },
    {
      what: 'a call',
      at: (size) => async (count) => {
        const view = await viewAt(size)
        for (let i = 0; i < count; i++) await view.call({ tool: TOOL, input: INPUT, callId: 'call-1' })
      },
    },
    {
      what: 'a call of a hidden tool',
      at: (size) => async (count) => {
        const view = await viewAt(size)
        for (let i = 0; i < count; i++) await view.call({ tool: 'no:such_tool', input: INPUT, callId: 'call-1' })
      },
    },
    {
      what: 'a change of the policy, and a view',
      at: (size) => async (count) => {
        const fork = gateAt(size).fork({})
        for (let i = 0; i < count; i++) {
          fork.setPolicy([])
          sink += Number((await fork.view(stranger())).has(TOOL))
        }
      },
    },
  ]
}

await growth(
  'When tools grow',
  [10, 100, 1000, 10_000],
  kindsOf((size) => createGate({ tools: makeTools(size), policy: POLICY })),
)

const thousand = makeTools(1000)

await growth(
  'When clauses without conditions grow, over 1,000 tools',
  [1, 10, 100, 1000],
  kindsOf((size) =>
    createGate({
      tools: thousand,
      policy: { deny: Array.from({ length: size }, (_, i) => `server${i % 20}:*_1${i}`) },
    }),
  ),
)

await growth(
  'When clauses with conditions grow, over 1,000 tools',
  [1, 10, 100, 1000],
  kindsOf((size) =>
    createGate({
      tools: thousand,
      policy: {
        deny: Array.from({ length: size }, (_, i) => ({
          match: `*:*_${i}1`,
          when: `caller.attributes.team == 'team-${i}'`,
        })),
      },
    }),
  ),
)

/** Each in turn, as new objects: what is kept is bounded, so from some number on, each comes as if for the first time. */
const crowd = createGate({ tools: thousand, policy: POLICY })
const firstTime = once(async () => (sink += Number((await crowd.view(stranger())).has(TOOL))))
await growth(
  'When callers grow',
  [1, 10, 100, 1000, 10_000, 100_000],
  [
    {
      what: 'a view for one of so many, in turn',
      at: (size) => async (count) => {
        for (let i = 0; i < count; i++) {
          const caller = { user: `one-of-${size}-${i % size}`, roles: ['viewer'], attributes: { team: 'sales' } }
          sink += Number((await crowd.view(caller)).has(TOOL))
        }
      },
    },
    { what: 'beside it: one who never came', at: () => firstTime },
  ],
)

await growth(
  'When sessions with an open group grow, over 1,000 tools',
  [1, 10, 100, 1000, 10_000, 100_000],
  [
    {
      what: 'a view for one of so many, in turn',
      at(size) {
        const gate = lockedGate()
        for (let i = 0; i < size; i++) gate.locks.request(sessionOf(i), 'locked')
        return async (count) => {
          for (let i = 0; i < count; i++) sink += Number((await gate.view(sessionOf(i % size))).has(TOOL))
        }
      },
    },
    {
      what: 'a new session, its group opened, and a view',
      at(size) {
        const gate = lockedGate()
        for (let i = 0; i < size; i++) gate.locks.request(sessionOf(i), 'locked')
        return async (count) => {
          for (let i = 0; i < count; i++) {
            const caller = sessionOf(size + next++)
            gate.locks.request(caller, 'locked')
            sink += Number((await gate.view(caller)).has(TOOL))
          }
        }
      },
    },
  ],
)

function lockedGate(): Gate {
  return createGate({
    tools: thousand,
    policy: POLICY,
    groups: { locked: { tools: ['server0:*'], unlock: 'request' } },
  })
}

function sessionOf(i: number): Caller {
  return { user: 'vera', session: `session-${i}` }
}

if (sink === 0) throw new Error('nothing was seen')
console.log(worse.length === 0 ? '\nNone is worse than linear.' : `\nWorse than linear: ${worse.join('; ')}.`)
if (worse.length > 0) process.exitCode = 1
