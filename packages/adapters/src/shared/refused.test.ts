import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { getErrorMessage } from '@ai-sdk/provider'
import { createGate, defineTool } from '@toolgate/core'
import { Agent } from '@mastra/core/agent'
import type { MastraModelConfig } from '@mastra/core/llm'
import { wrapToolMapWithHooks } from '../ai-sdk.ts'
import { guard as guardMastra } from '../mastra.ts'
import { mockModel } from '../testing/mock-model.ts'
import { VIEWER } from '../testing/world.ts'
import { RefusedCall } from './refused.ts'

const POLICY = {
  name: 'payments-desk',
  deny: [{ match: 'pay', when: "caller.user == 'vera' && 'auditor' in caller.roles == false" }],
  ask: ['refund'],
}
/** What is for the host and the log, and never for a model. */
const DECIDED =
  /payments-desk|auditor|policy_denied|[0-9a-f]{64}|"?(decision|approval|reasons|inputHash|detail|outcome)"?:/

function createTestGate() {
  const fail = () => {
    throw new Error('the till is jammed')
  }
  const tools = [
    defineTool({ name: 'pay', execute: () => 'paid' }),
    defineTool({ name: 'refund', execute: () => 'refunded' }),
    defineTool({ name: 'count', execute: fail }),
    defineTool({ name: 'look', execute: () => 'seen' }),
  ]
  return createGate({ tools, policy: POLICY, limits: 'look:1/60' })
}

/** One refusal of each kind, as an adapter throws it. */
async function refusals(): Promise<readonly RefusedCall[]> {
  const view = await createTestGate().view(VIEWER)
  const outcomes = await Promise.all(['pay', 'refund', 'count'].map((tool) => view.call({ tool, input: {} })))
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['refused', 'waiting', 'failed'],
  )
  return outcomes.map((outcome) => new RefusedCall(outcome as RefusedCall['outcome']))
}

/** How frameworks make a text of an error, or keep one. */
const TOLD: Readonly<Record<string, (error: Error) => unknown>> = {
  'JSON.stringify': (error) => JSON.stringify(error),
  'JSON of what holds it': (error) => JSON.stringify({ type: 'tool-error', payload: { error } }),
  String: String,
  'the AI SDK’s getErrorMessage': getErrorMessage,
  'its own fields': (error) => JSON.stringify(Object.fromEntries(Object.entries(error))),
  'its entries': (error) => JSON.stringify(Object.entries(error)),
  'util.inspect': (error) => inspect(error, { depth: 10 }),
  structuredClone: (error) => inspect(structuredClone(error), { depth: 10 }),
  'Object.assign': (error) => JSON.stringify(Object.assign({}, error)),
}

describe('RefusedCall', () => {
  for (const [how, tell] of Object.entries(TOLD))
    it(`says nothing of the decision by ${how}`, async () => {
      for (const error of await refusals()) assert.doesNotMatch(String(tell(error)), DECIDED)
    })

  it('is its text in JSON, and nothing more', async () => {
    for (const error of await refusals()) {
      assert.equal(JSON.stringify(error), JSON.stringify(error.outcome.text))
      assert.equal(String(error), error.outcome.text)
    }
  })

  it('has its outcome for the host all the same', async () => {
    const [refused, waiting, failed] = await refusals()
    assert.equal(refused?.outcome.status, 'refused')
    assert.ok(waiting?.outcome.status === 'waiting' && waiting.outcome.approval.id)
    assert.equal((failed?.cause as Error | undefined)?.message, 'the till is jammed')
    assert.equal(refused?.code, 'tool_refused')
  })
})

describe('the errors of wrapToolMapWithHooks', () => {
  for (const [how, tell] of Object.entries(TOLD))
    it(`say nothing of the decision by ${how}`, async () => {
      const beforeToolCall = (): never => {
        throw new Error('payments-desk is down')
      }
      const { pay } = wrapToolMapWithHooks(
        { pay: { execute: (_: object, __: object) => 'paid' } },
        { beforeToolCall },
      ).tools
      const error: unknown = await (async () => pay.execute({}, {}))().catch((thrown: unknown) => thrown)
      assert.ok(error instanceof Error)
      assert.doesNotMatch(String(tell(error)), DECIDED)
    })
})

describe('the stream of Mastra, which its server sends to clients', () => {
  it('says nothing of a decision', async () => {
    const gate = createTestGate()
    const model = mockModel([[{ name: 'look' }, { name: 'look', id: 'call-1' }], 'done'])
    const agent = new Agent({
      id: 'a',
      name: 'a',
      instructions: 'x',
      model: model as unknown as MastraModelConfig,
      ...guardMastra(gate, { caller: () => VIEWER }),
    })
    const stream = await agent.stream('go')
    const chunks: unknown[] = []
    for await (const chunk of stream.fullStream) chunks.push(chunk)
    const text = JSON.stringify(chunks)
    assert.match(text, /TOOL_CALL_BLOCKED: rate limited/)
    assert.doesNotMatch(text, /rate_limited|"(decision|reasons|outcome|detail)"/)
  })
})
