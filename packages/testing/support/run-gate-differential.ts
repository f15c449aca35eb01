import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createGate, defineTool, type View } from '@toolgate/core'
import { decideRun, type Json, type RunPolicy, toRunPolicy, type TracedCall } from './naive-history.ts'
import { ADDRESSED, ASKED, inputArbitrary, RAISES, runPolicyArbitrary, traceArbitrary } from './run-worlds.ts'
import { wordOf } from '../../core/src/call/outcome.ts'

/** The behaviour of a tool in a trace: it ends as in the trace, or keeps running. */
interface Plan {
  readonly call: TracedCall
  readonly began: () => void
  readonly until: Promise<void>
}

async function execute(plan: Plan): Promise<Json> {
  const { call, began, until } = plan
  began()
  if (!call.ended) {
    await until
    return null
  }
  if (!call.ended.done) throw new Error('it failed')
  return call.ended.output
}

const TRACES_PER_GATE = 25
const GATES = 20

/** Rules whose facts the naive evaluator can compute. Origins are excluded, because they need an index. */
const policyArbitrary = runPolicyArbitrary.filter((policy) => !JSON.stringify(policy).includes('"op":"origin"'))

const moments = fc.array(fc.tuple(traceArbitrary, inputArbitrary), {
  minLength: TRACES_PER_GATE,
  maxLength: TRACES_PER_GATE,
})

/** Compares the gate and its stored histories with the naive evaluator over whole traces. */
export async function compareGate({ cases, seed }: { readonly cases: number; readonly seed: number }): Promise<number> {
  let compared = 0
  const property = fc.asyncProperty(policyArbitrary, moments, async (policy, all) => {
    const gate = createGate({
      tools: [...RAISES.keys()].map(toTool),
      labels: { trusted: ['fraud:*'], private: ['crm:*'] },
      policy: toRunPolicy(policy, ASKED),
      onWarning: () => undefined,
    })
    const view = await gate.view({ user: 'vera' })
    for (const [i, [{ calls }, input]] of all.entries()) {
      await compareTrace(view, policy, `run ${i}`, [
        ...calls,
        { tool: ASKED, input, raises: [], ended: { done: true, output: null } },
      ])
      compared++
    }
    await gate.close()
  })
  for (let left = cases; left > 0; left -= GATES * TRACES_PER_GATE)
    await fc.assert(property, { numRuns: GATES, seed: seed + left })
  return compared
}

function toTool(id: string) {
  const [namespace, name = ''] = id.split(':')
  return defineTool({
    namespace,
    name,
    addressees: id === ASKED ? ADDRESSED : [],
    execute: (_, { context }) => execute(context as Plan),
  })
}

/** Makes the calls of a trace in order. Calls without an end keep running until all calls were made. */
async function compareTrace(view: View, policy: RunPolicy, id: string, calls: readonly TracedCall[]): Promise<void> {
  const happened: TracedCall[] = []
  const over = Promise.withResolvers<void>()
  const pending: Promise<unknown>[] = []
  for (const call of calls) {
    const subject = { trace: { calls: happened }, input: call.input, origins: new Map(), addressees: ADDRESSED }
    const expected = call.tool === ASKED ? decideRun(policy, subject) : 'allow'
    const began = Promise.withResolvers<void>()
    const plan: Plan = { call, began: () => began.resolve(), until: over.promise }
    const outcome = view.call({ tool: call.tool, input: call.input, run: { id }, context: plan })
    // A call that is refused or waits for a person does not begin. A call that begins may not end yet.
    const word = await Promise.race([began.promise.then(() => 'allow' as const), outcome.then(wordOf)])
    assert.equal(word, expected, `${call.tool} after ${JSON.stringify(happened)}`)
    if (word === 'allow') happened.push({ ...call, raises: RAISES.get(call.tool) ?? [] })
    if (call.ended) await outcome
    else pending.push(outcome)
  }
  over.resolve()
  await Promise.all(pending)
}
