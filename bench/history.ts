import { createGate, type Policy, type View } from '@toolgate/core'
import { type Case, measure, printFigures } from './lib.ts'
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
