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
const labelElsewhere: Policy = { deny: [{ match: 'server10:read_thing_10', when: "'private' in run.labels" }] }
const labelHere: Policy = { deny: [{ match: tool, when: "'private' in run.labels" }] }
/** It asks about each call of the tool, which is kept, too. */
const begunHere: Policy = {
  deny: [{ match: tool, input: "run.began('server0:read_thing_0', { 'input.path': input.path + 'never' })" }],
}

async function viewWith(...more: readonly Policy[]): Promise<View> {
  return createGate({ tools, policy: [bareRules, ...more] }).view(caller)
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
const figures = await measure([
  callsOf(bare, await viewWith()),
  callsOf('… that raises a label, which rules about other tools read', await viewWith(labelElsewhere), 'bare + 0.3 µs'),
  callsOf('… with a rule about a label', await viewWith(labelHere), 'bare + 2 µs'),
  callsOf('… with a rule about earlier calls, and kept for it', await viewWith(begunHere), 'bare + 2 µs each'),
])
printFigures('Rules about what happened in a run', figures, bare)
