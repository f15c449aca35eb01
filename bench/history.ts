import { createGate, defineTool, type Policy, type View } from '@toolgate/core'
import { memoryHistories } from '@toolgate/core/stores'
import { type Case, digits, heapMb, measure, printFigures, printTable } from './lib.ts'
import { makeTools } from './tools.ts'

const tools = makeTools(1000)
const tool = 'server0:read_thing_0'
const caller = { user: 'vera', tenant: 'acme', roles: ['viewer'] }
const run = { id: 'run-1' }
const bareRules: Policy = {
  deny: ['tag:danger', { match: '*:delete_*', unless: "'admin' in caller.roles" }],
  ask: ['*:send_*'],
}
const other = 'server10:read_thing_10'
const never = "run.began('server0:read_thing_0', { 'input.path': input.path + 'never' })"
const plainElsewhere: Policy = { deny: [{ match: other, when: "'private' in caller.roles" }] }
const labelElsewhere: Policy = { deny: [{ match: other, when: "'private' in run.labels" }] }
const labelHere: Policy = { deny: [{ match: tool, when: "'private' in run.labels" }] }
const askedHere: Policy = { deny: [{ match: tool, input: never.replace(tool, other) }] }
const keptHere: Policy = { deny: [{ match: other, input: never }] }
const both: Policy = { deny: [{ match: tool, input: never }] }

async function viewWith(...more: readonly Policy[]): Promise<View> {
  return createGate({ tools, policy: [bareRules, ...more], labels: { private: ['server1:*'] } }).view(caller)
}

/** A hundred inputs: more would not fit into the history of one run. */
function callsOf(name: string, view: View, budget = ''): Case {
  let calls = 0
  return {
    name,
    budget,
    async run(count) {
      for (let i = 0; i < count; i++) {
        const input = { path: `/workspace/${calls++ % 100}` }
        const outcome = await view.call({ tool, input, callId: 'call-1', run })
        if (outcome.status !== 'done') throw new Error(`the call was ${outcome.status}: ${outcome.text}`)
      }
    },
  }
}

const bare = 'a gated call of a run'
const figures = await measure(
  [
    callsOf(bare, await viewWith(plainElsewhere)),
    callsOf(
      '… that raises a label, which rules about other tools read',
      await viewWith(labelElsewhere),
      'bare + 0.3 µs',
    ),
    callsOf('… with a rule about a label', await viewWith(labelHere), 'bare + 2 µs'),
    callsOf('… with a rule about earlier calls of another tool', await viewWith(askedHere), 'bare + 2 µs'),
    callsOf('… kept for rules about other tools', await viewWith(keptHere), 'bare + 2 µs'),
    callsOf('… with a rule about earlier calls of its own, and kept for it', await viewWith(both), 'bare + 4 µs'),
  ],
  // The collection before each round discards some optimised code, which a short round would mostly measure.
  { roundMs: 100 },
)
printFigures('Rules about what happened in a run', figures, bare)

/** Reads until its run is full, or there is no room: mostly text that no other run has seen. */
const store = memoryHistories()
let read = 0
const readers = createGate({
  tools: [
    defineTool({ namespace: 'web', name: 'fetch', execute: () => textOf(read++) }),
    defineTool({ namespace: 'mail', name: 'send', addressees: ['to'], execute: () => 'sent' }),
  ],
  policy: { ask: [{ match: 'mail:send', input: "origin(addressees) != 'user'" }] },
  history: { store },
  onWarning: () => {},
})

function textOf(count: number): string {
  return Array.from({ length: 40 }, (_, i) => `${count}-${i} person${count * 31 + i}@example${i % 97}.com\n`).join('')
}

const [RUNS, READS_OF_RUN, USERS] = [1000, 80, 50]
const before = await heapMb()
let refused = 0
for (let i = 0; i < RUNS; i++) {
  const view = await readers.view({ user: `user-${i % USERS}` })
  let status = 'done'
  for (let n = 0; n < READS_OF_RUN && status === 'done'; n++)
    ({ status } = await view.call({
      tool: 'web:fetch',
      input: {},
      run: { id: `run-${i}`, userWords: 'Write to Ann.' },
    }))
  if (status !== 'done') refused++
}
const heap = (await heapMb()) - before
printTable(
  `Memory of ${RUNS.toLocaleString('en')} runs that read ${READS_OF_RUN} pages each`,
  ['what', 'here', 'budget'],
  [
    ['heap, MB', digits(heap), '≤ 150'],
    ['by the store’s own count, MB', digits(store.bytes / 1e6), '≤ 67.1'],
    ['runs without room, of which calls were refused', String(refused), ''],
  ],
)
if (store.bytes > 64 * 1024 * 1024) throw new Error('the histories are over their bound')
