import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { calls, createScene, DONE, sentTools, toldTexts } from '../testing/openai-agents-scene.ts'
import { ADMIN, VIEWER } from '../testing/world.ts'

describe('guard', () => {
  it('sends each caller the tools that they may see', async () => {
    const { agent, runner, model } = createScene({ script: [DONE, DONE] })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    await runner.run(agent, 'hi', { context: { caller: ADMIN } })
    assert.deepEqual(sentTools(model), [
      ['alpha', 'search'],
      ['alpha', 'delete_all', 'search'],
    ])
  })

  it('runs what is allowed, and gives the tool’s own result', async () => {
    const { agent, runner, model, witness, audit } = createScene({ script: [calls('search'), DONE] })
    const result = await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.equal(result.finalOutput, 'done')
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(toldTexts(model), ['search done'])
    assert.deepEqual(audit.attempts(), ['search tool_call', 'search tool_result'])
  })

  it('refuses a hidden tool that the model calls by name, and the run goes on', async () => {
    const { agent, runner, model, witness, audit } = createScene({ script: [calls('delete_all', 'search'), DONE] })
    const result = await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.equal(result.finalOutput, 'done')
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(audit.attempts(), [
      'search tool_call',
      'search tool_result',
      'delete_all tool_blocked policy_denied',
    ])
    assert.deepEqual(toldTexts(model), [
      'search done',
      'Tool "delete_all" is not available. Available tools: alpha, search.',
    ])
  })

  it('records it also where the runner was told nothing, and the SDK ends the run', async () => {
    const { agent, witness, audit } = createScene({ script: [calls('delete_all')] })
    const { runnerOf } = await import('../testing/openai-agents-scene.ts')
    await assert.rejects(runnerOf().run(agent, 'hi', { context: { caller: VIEWER } }), /Tool delete_all not found/)
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied'])
  })
})
