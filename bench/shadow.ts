import { createGate, type Gate, memoryAudit, type Policy, type View } from '@toolgate/core'
import { Coverage } from '../packages/core/src/decide/coverage.ts'
import { digits, measure, median, printFigures, printTable } from './lib.ts'
import { makeTools } from './tools.ts'

/** Measures a shadow beside the same policy enforced, and the counting of clauses that hold. */

const tools = makeTools(1000)
const tool = 'server0:read_thing_0'
const input = Object.freeze({ path: '/workspace/a.txt' })
const roles = ['viewer']
const baseline: Policy = {
  deny: ['tag:danger', { match: '*:delete_*', unless: "'admin' in caller.roles" }],
  ask: ['*:send_*'],
}
const further: Policy = {
  name: 'further',
  deny: [
    { match: '*:read_*', when: "'guest' in caller.roles" },
    { match: '*:read_*', input: "!within(input.path, '/workspace')" },
  ],
}

/** Rounds of each kind are of three figures in turn, so that a ratio has the same weather above and below. */
const ROUNDS = 41
const ROUND_MS = 4
const KINDS: readonly (readonly [name: string, policies: readonly Policy[]])[] = [
  ['without', [baseline]],
  ['enforced', [baseline, further]],
  ['shadow', [baseline, { ...further, mode: 'shadow' }]],
]
const gates = KINDS.map(([, policy]) => createGate({ tools, policy, audit: memoryAudit() }))
const views = await Promise.all(gates.map((gate) => gate.view({ user: 'vera', roles })))
const ids = tools.map(({ id }) => id)
let sink = 0
let users = 0

type Work = (i: number, count: number) => void | Promise<void>
const WORK: readonly (readonly [name: string, work: Work])[] = [
  [
    'deciding a tool on a view',
    (i, count) => {
      const view = views[i] as View
      for (let n = 0; n < count; n++) if (view.has(ids[(n * 7) % 1000] ?? '')) sink++
    },
  ],
  [
    'a new view of 1,000 tools',
    async (i, count) => {
      const gate = gates[i] as Gate
      for (let n = 0; n < count; n++) sink += (await gate.view({ user: `u${users++}`, roles })).size
    },
  ],
  [
    'a gated call',
    async (i, count) => {
      for (let n = 0; n < count; n++) {
        const { status } = await (views[i] as View).call({ tool, input, callId: 'call-1' })
        if (status !== 'done') throw new Error(`the call was ${status}`)
      }
    },
  ],
]

async function cpuOf(work: Work, i: number, count: number): Promise<number> {
  const before = process.cpuUsage()
  await work(i, count)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

const rows: string[][] = []
for (const [name, work] of WORK) {
  for (const i of KINDS.keys()) await work(i, 1000)
  const firstUs = (await cpuOf(work, 0, 500)) || 0.01
  const count = Math.max(100, Math.ceil((ROUND_MS * 1000) / firstUs))
  const rounds: number[][] = []
  for (let round = 0; round < ROUNDS; round++) {
    globalThis.gc?.()
    const own: number[] = []
    for (let k = 0; k < KINDS.length; k++) {
      const i = (k + round) % KINDS.length
      own[i] = await cpuOf(work, i, count)
    }
    rounds.push(own)
  }
  const [without, enforced, shadow] = [0, 1, 2].map((i) => median(rounds.map((own) => own[i] as number)))
  const ratios = rounds.map(([, one = 1, other = 1]) => other / one).toSorted((a, b) => a - b)
  const at = (part: number) => digits(ratios[Math.floor(part * (ratios.length - 1))] as number)
  rows.push([
    name,
    ...[without, enforced, shadow].map((us) => digits(us as number)),
    at(0.5),
    `${at(0.1)} - ${at(0.9)}`,
    '1 ×',
  ])
}
printTable(
  `A shadow beside the same policy enforced (${ROUNDS} rounds of each in turn; the ratio is of each round)`,
  ['what', 'µs without', 'enforced', 'shadow', 'shadow / enforced', '10 - 90 %', 'budget'],
  rows,
)

/** Returns what counting a call is asked with. */
async function countedOf(policy: Policy): Promise<Parameters<Coverage['count']>> {
  const { count } = Coverage.prototype
  let asked: Parameters<Coverage['count']> | undefined
  Coverage.prototype.count = (...given) => void (asked = given)
  const view = await createGate({ tools, policy, audit: memoryAudit() }).view({ user: 'vera', roles })
  await view.call({ tool, input })
  Coverage.prototype.count = count
  if (!asked) throw new Error('no call was counted')
  return asked
}

const shadows: Policy = { ask: [{ match: tool, mode: 'shadow' }] }
const fixed: Policy = { ...shadows, allow: ['*'], deny: [{ match: tool, mode: 'shadow' }] }
const aboutInput: Policy = { ...fixed, allow: [{ match: '*', input: "within(input.path, '/workspace')" }] }
const adds = new Float64Array(8)

async function counting(policy: Policy) {
  const asked = await countedOf(policy)
  const coverage = new Coverage(() => 1)
  coverage.follow(asked[0].today.policies.map(({ whole }) => whole))
  return (count: number) => {
    for (let n = 0; n < count; n++) coverage.count(asked[0], asked[1], n)
  }
}

const figures = await measure(
  [
    {
      name: 'adding to three counts and times',
      run: (count) => {
        for (let n = 0; n < count; n++)
          for (let slot = 0; slot < 3; slot++) {
            adds[slot] = (adds[slot] as number) + 1
            adds[slot + 4] = n
          }
      },
    },
    { name: 'counting a call where three clauses hold', budget: '0.03 µs', run: await counting(fixed) },
    { name: '… where one of them is about the input', budget: '0.03 µs', run: await counting(aboutInput) },
  ],
  // Long rounds: the collection before each throws compiled code away.
  { rounds: 9, roundMs: 400 },
)
printFigures('Counting the clauses that hold', figures, 'adding to three counts and times')
if (sink === 0 || adds[0] === 0) throw new Error('nothing was measured')
