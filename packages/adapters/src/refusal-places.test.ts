import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { MemorySaver } from '@langchain/langgraph'
import { createGate, type Policy } from '@toolgate/core'
import { generateText, streamText } from 'ai'
import { ToolMessage } from 'langchain'
import { applyApprovals, guard as guardAi } from './ai-sdk.ts'
import { guard as guardAnthropic } from './anthropic.ts'
import { fromClaudeAgent, guard as guardClaude } from './claude-agent.ts'
import { decideApprovals } from './langchain.ts'
import { createWorld, scripted } from './langchain/testing/agents.ts'
import { guard as guardGemini } from './gemini.ts'
import { guard as guardMcp } from './mcp.ts'
import { guard as guardOpenAI } from './openai.ts'
import { answer, createAiSdkWorld, stopWhen } from './testing/ai-sdk-world.ts'
import { mockModel } from './testing/mock-model.ts'
import { INFO } from './testing/mcp-ways.ts'
import { calls, createScene, DONE } from './testing/openai-agents-scene.ts'
import { ADMIN, VIEWER } from './testing/world.ts'

// The table in docs/guide/frameworks.md: where each framework shows the reason of a refusal. Mastra's row is tested in
// mastra-approvals.e2e.test.ts, and the hooks of the Claude Agent SDK in its own loop in tests/claude-agent.

const MESSAGE = 'Not on Sundays.'
const DENIES: Policy = { deny: [{ match: 'delete_all', input: 'true', message: MESSAGE }] }
const ASKS: Policy = { ask: ['delete_all'] }
const DENIED = `TOOL_CALL_BLOCKED: ${MESSAGE}`
const REJECTED = 'TOOL_CALL_BLOCKED: a person rejected this call: not today'
const NO = { decision: 'reject', reason: 'not today' } as const

describe('the reason of a refusal, in the AI SDK', () => {
  const turns = () => mockModel([[{ name: 'delete_all' }], 'Done.'])

  it('is a tool-error part, and an error text for the model and the page', async () => {
    const { gate } = createAiSdkWorld({ policy: DENIES })
    const model = turns()
    const { steps } = await generateText({ model, prompt: 'p', stopWhen, ...(await guardAi(gate, VIEWER)) })
    const part = steps[0]?.content.find(({ type }) => type === 'tool-error')
    assert.equal(part?.type === 'tool-error' && String(part.error), DENIED)
    assert.deepEqual(model.told(), { 'call-0': { type: 'error-text', value: DENIED } })
    const streamed = streamText({ model: turns(), prompt: 'p', stopWhen, ...(await guardAi(gate, VIEWER)) })
    const chunks = await Array.fromAsync(streamed.toUIMessageStream())
    const shown = chunks.find(({ type }) => type === 'tool-output-error')
    assert.equal(shown?.type === 'tool-output-error' && shown.errorText, DENIED)
  })

  it('is the reason of an execution-denied, if a person rejects the call', async () => {
    const { gate } = createAiSdkWorld({ policy: ASKS })
    const messages = [{ role: 'user', content: 'Delete.' }] as const
    const paused = await generateText({ model: turns(), messages: [...messages], ...(await guardAi(gate, VIEWER)) })
    const answered = answer([...messages, ...paused.responseMessages], false, 'not today')
    await applyApprovals(gate, VIEWER, answered)
    const model = mockModel(['Fine.'])
    await generateText({ model, messages: answered, ...(await guardAi(gate, VIEWER)) })
    assert.deepEqual(model.told(), { 'call-0': { type: 'execution-denied', reason: 'not today' } })
  })
})

describe('the reason of a refusal, in LangChain', () => {
  it('is a ToolMessage with status error', async () => {
    const { run } = createWorld(scripted([{ name: 'delete_all', id: 'c1' }]), { policy: DENIES })
    const told = (await run(VIEWER)).messages.find((message) => ToolMessage.isInstance(message))
    assert.deepEqual([told?.status, told?.content, told?.tool_call_id], ['error', DENIED, 'c1'])
  })

  it('is one, too, if a person rejects the call', async () => {
    const world = createWorld(scripted([{ name: 'delete_all' }]), { policy: ASKS, checkpointer: new MemorySaver() })
    await decideApprovals(world.gate, VIEWER, await world.run(VIEWER), NO)
    const told = (await world.resume(VIEWER)).messages.find((message) => ToolMessage.isInstance(message))
    assert.deepEqual([told?.status, told?.content], ['error', REJECTED])
  })
})

describe('the reason of a refusal, in OpenAI Agents', () => {
  const toldBy = ({ model }: ReturnType<typeof createScene>) => {
    const { input } = model.lastCall?.request ?? { input: [] }
    return typeof input === 'string' ? [] : input.filter(({ type }) => type === 'function_call_result')
  }

  it('is the output of the call', async () => {
    const scene = createScene({ policy: DENIES, script: [calls('delete_all'), DONE] })
    await scene.runner.run(scene.agent, 'hi', { context: { caller: VIEWER } })
    const [told] = toldBy(scene)
    assert.deepEqual(told?.type === 'function_call_result' && told.output, { type: 'text', text: DENIED })
  })

  it('is the rejection message, if a person rejects the call', async () => {
    const scene = createScene({ policy: ASKS, script: [calls('delete_all'), DONE] })
    const { state, interruptions } = await scene.runner.run(scene.agent, 'hi', { context: { caller: VIEWER } })
    const [item] = interruptions
    assert.ok(item)
    await scene.guarded.answer(state, item, { ...ADMIN, roles: ['approver'] }, NO)
    await scene.runner.run(scene.agent, state)
    const [told] = toldBy(scene)
    assert.deepEqual(told?.type === 'function_call_result' && told.output, { type: 'text', text: REJECTED })
  })
})

describe('the reason of a refusal, in the Claude Agent SDK', () => {
  const gate = createGate({
    tools: { ...fromClaudeAgent(['Bash']), delete_all: { execute: () => 'deleted' } },
    policy: { deny: [{ match: ['Bash', 'delete_all'], input: 'true', message: MESSAGE }] },
  })

  it('is the reason of the hook’s deny, for a tool that the harness runs', async () => {
    const { hooks } = await guardClaude(gate, VIEWER)
    const asked = { session_id: 's', tool_name: 'Bash', tool_input: {}, tool_use_id: 'c1' }
    const [matcher] = hooks['PreToolUse'] ?? []
    const told: unknown = await matcher?.hooks[0]?.(asked, 'c1', { signal: new AbortController().signal })
    assert.deepEqual(told, {
      hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: DENIED },
    })
  })

  it('is a result with isError, for a tool that the gate runs', async () => {
    const { mcpServers } = await guardClaude(gate, VIEWER)
    const { instance } = mcpServers['gate'] as { readonly instance: Server }
    assert.deepEqual(await callOf(instance, 'delete_all'), errorResult)
  })
})

const errorResult = { content: [{ type: 'text', text: DENIED }], isError: true }

async function callOf(server: Pick<Server, 'connect'>, name: string): Promise<object> {
  const [near, far] = InMemoryTransport.createLinkedPair()
  await server.connect(far)
  const client = new Client(INFO)
  await client.connect(near)
  const result = await client.callTool({ name, arguments: {} })
  await client.close()
  return result
}

describe('the reason of a refusal, for a client of MCP', () => {
  it('is a result with isError', async () => {
    const gate = createGate({ tools: { delete_all: { execute: () => 'deleted' } }, sources: [], policy: DENIES })
    const serve = guardMcp(gate, { server: () => new Server(INFO), caller: VIEWER })
    assert.deepEqual(await callOf(serve(), 'delete_all'), errorResult)
  })
})

describe('the reason of a refusal, in your own loop', () => {
  const open = () => createGate({ tools: { delete_all: { execute: () => 'deleted' } }, sources: [], policy: DENIES })
  const NAMED = { name: 'delete_all' } as const

  it('is the result of the call, for Anthropic with is_error', async () => {
    const run = await guardAnthropic(open(), VIEWER)
    await run.next()
    const told = await run.execute({ type: 'tool_use', id: 'c1', input: {}, ...NAMED })
    assert.deepEqual(told, { type: 'tool_result', tool_use_id: 'c1', content: DENIED, is_error: true })
  })

  it('is the error of the response, for Gemini', async () => {
    const run = await guardGemini(open(), VIEWER)
    await run.next()
    const { functionResponse } = await run.execute({ id: 'c1', args: {}, ...NAMED })
    assert.deepEqual(functionResponse, { id: 'c1', ...NAMED, response: { error: DENIED } })
  })

  it('is the output of the call, for OpenAI, which has no mark for errors', async () => {
    const run = await guardOpenAI(open(), VIEWER)
    await run.next()
    const told = await run.execute({ type: 'function_call', call_id: 'c1', arguments: '{}', ...NAMED })
    assert.deepEqual(told, { type: 'function_call_output', call_id: 'c1', output: DENIED })
  })
})
