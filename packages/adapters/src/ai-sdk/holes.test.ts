import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  generateText,
  type LanguageModelMiddleware,
  streamText,
  tool,
  toolSearch,
  ToolLoopAgent,
  type ToolSet,
  wrapLanguageModel,
} from 'ai'
import { createGate, type Gate } from '@toolgate/core'
import { z } from 'zod'
import { applyApprovals, fromAiSdk, guard } from '../ai-sdk.ts'
import { answer, type AiSdkWorld, createAiSdkWorld, forge, stopWhen } from '../testing/ai-sdk-world.ts'
import { type MockModel, mockModel } from '../testing/mock-model.ts'
import { createWitness, VIEWER } from '../testing/world.ts'

const DELETES = [{ name: 'delete_all' }]
const ALL = ['alpha', 'delete_all', 'search']

/** The behaviour of the SDK alone, and with a guard: only the first may run the hidden tool. */
interface Hole {
  readonly alone: (world: AiSdkWorld, model: MockModel) => Promise<unknown>
  readonly guarded: (world: AiSdkWorld, model: MockModel) => Promise<unknown>
  /** Whether the SDK alone runs it. */
  readonly runs: boolean
  readonly turns?: Parameters<typeof mockModel>[0]
}

const prompt = 'p'
const strip: LanguageModelMiddleware = {
  specificationVersion: 'v4',
  transformParams: async ({ params }) => ({
    ...params,
    tools: params.tools?.filter(({ name }) => name === 'search') ?? [],
  }),
}

const holes: Record<string, Hole> = {
  'activeTools hides it': {
    runs: false,
    alone: ({ tools }, model) => generateText({ model, prompt, stopWhen, tools, activeTools: ['search'] }),
    guarded: async ({ gate }, model) =>
      generateText({ model, prompt, stopWhen, ...(await guard(gate, VIEWER, { activeTools: ['search'] })) }),
  },
  'prepareStep widens what activeTools has hidden': {
    runs: true,
    alone: ({ tools }, model) =>
      generateText({
        model,
        prompt,
        stopWhen,
        tools,
        activeTools: ['search'],
        prepareStep: () => ({ activeTools: ALL }),
      }),
    guarded: async ({ gate }, model) => {
      const options = { activeTools: ['search'], prepareStep: () => ({ activeTools: ALL }) }
      return generateText({ model, prompt, stopWhen, ...(await guard(gate, VIEWER, options)) })
    },
  },
  'prepareStep after the spread widens': {
    runs: true,
    alone: ({ tools }, model) =>
      generateText({
        model,
        prompt,
        stopWhen,
        tools,
        activeTools: ['search'],
        prepareStep: () => ({ activeTools: ALL }),
      }),
    guarded: async ({ gate }, model) =>
      generateText({
        model,
        prompt,
        stopWhen,
        ...(await guard(gate, VIEWER)),
        prepareStep: () => ({ activeTools: ALL }),
      }),
  },
  'a model middleware strips it, which hides only': {
    runs: true,
    alone: ({ tools }, model) =>
      generateText({ model: wrapLanguageModel({ model, middleware: strip }), prompt, stopWhen, tools }),
    guarded: async ({ gate }, model) =>
      generateText({
        model: wrapLanguageModel({ model, middleware: strip }),
        prompt,
        stopWhen,
        ...(await guard(gate, VIEWER)),
      }),
  },
  'the provider is told what is allowed, which masks only': {
    runs: true,
    alone: ({ tools }, model) =>
      generateText({
        model,
        prompt,
        stopWhen,
        tools,
        providerOptions: { openai: { allowedTools: { toolNames: ['search'] } } },
      }),
    guarded: async ({ gate }, model) => {
      const options = { mode: 'mask', provider: 'openai', prepareStep: () => ({ activeTools: ['search'] }) } as const
      return generateText({ model, prompt, stopWhen, ...(await guard(gate, VIEWER, options)) })
    },
  },
  'messages approve what activeTools hides': {
    runs: true,
    turns: ['Hm.'],
    alone: ({ tools }, model) =>
      generateText({ model, messages: forge('delete_all'), stopWhen, tools, activeTools: ['search'] }),
    guarded: async ({ gate }, model) =>
      generateText({ model, messages: forge('delete_all'), stopWhen, ...(await guard(gate, VIEWER)) }),
  },
  'messages approve what nobody was asked about': {
    runs: true,
    turns: ['Hm.'],
    alone: ({ tools }, model) => generateText({ model, messages: forge('delete_all'), stopWhen, tools }),
    guarded: async ({ gate }, model) => {
      gate.setPolicy({ ask: ['delete_all'] })
      return streamText({
        model,
        messages: forge('delete_all'),
        stopWhen,
        ...(await guard(gate, VIEWER)),
      }).consumeStream()
    },
  },
  'a tool is hidden after a person has approved it': {
    runs: true,
    turns: [DELETES, 'Hm.'],
    alone: async ({ tools }, model) => {
      const toolApproval = { delete_all: 'user-approval' } as const
      const options = { model, stopWhen, tools, toolApproval }
      const { responseMessages } = await generateText({ ...options, messages: [{ role: 'user', content: 'p' }] })
      const messages = answer([{ role: 'user', content: 'p' }, ...responseMessages], true)
      return generateText({ ...options, messages, activeTools: ['search'] })
    },
    guarded: async ({ gate }, model) => {
      gate.setPolicy({ ask: ['delete_all'] })
      const messages = [{ role: 'user', content: 'p' }] as const
      const paused = await generateText({ model, messages: [...messages], stopWhen, ...(await guard(gate, VIEWER)) })
      const approved = answer([...messages, ...paused.responseMessages], true)
      assert.equal((await applyApprovals(gate, VIEWER, approved))[0]?.approval?.status, 'approved')
      const narrowed = await guard(gate, VIEWER, { activeTools: ['search'] })
      return generateText({ model, messages: approved, stopWhen, ...narrowed })
    },
  },
  'toolChoice forces it': {
    runs: false,
    alone: ({ tools }, model) =>
      generateText({
        model,
        prompt,
        stopWhen,
        tools,
        activeTools: ['search'],
        toolChoice: { type: 'tool', toolName: 'delete_all' },
      }).catch(() => {}),
    guarded: async ({ gate }, model) =>
      generateText({
        model,
        prompt,
        stopWhen,
        ...(await guard(gate, VIEWER)),
        toolChoice: { type: 'tool', toolName: 'delete_all' },
      }).catch(() => {}),
  },
  'an agent is shared, and prepareCall picks by role': {
    runs: false,
    alone: ({ tools }, model) =>
      new ToolLoopAgent({
        model,
        tools,
        prepareCall: (settings) => ({ ...settings, activeTools: ['search'] }),
      }).generate({
        prompt,
      }),
    guarded: ({ gate, tools }, model) =>
      new ToolLoopAgent({
        model,
        tools,
        prepareCall: async (settings) => ({ ...settings, ...(await guard(gate, VIEWER)) }),
      }).generate({ prompt }),
  },
}

describe('what the AI SDK alone lets through', () => {
  for (const [name, { alone, guarded, runs, turns = [DELETES, 'Hm.'] }] of Object.entries(holes))
    it(`does not run behind a guard: ${name}`, async () => {
      const without = createAiSdkWorld()
      await alone(without, mockModel(turns))
      assert.deepEqual(without.witness.ran, runs ? ['delete_all'] : [], 'as the SDK does today')

      const world = createAiSdkWorld()
      await guarded(world, mockModel(turns))
      assert.deepEqual(world.witness.ran, [])
      assert.match(world.audit.attempts().at(-1) ?? '', /^delete_all (tool_blocked|tool_approval_required) /)
    })

  it('rejects an unknown name in activeTools at once, instead of sending no tools', async () => {
    const { gate, tools } = createAiSdkWorld()
    const model = mockModel(['Hm.'])
    await generateText({ model, prompt, tools, activeTools: ['serach'] })
    assert.equal(model.requests[0]?.tools, undefined)
    await assert.rejects(guard(gate, VIEWER, { activeTools: ['serach'] }), { name: 'UnknownToolError' })
  })

  it('finds no hidden tool by toolSearch, and runs none of those that it finds past the gate', async () => {
    const witness = createWitness()
    const deferred = (name: string) =>
      tool({
        description: `Can ${name} files.`,
        deferLoading: true,
        inputSchema: z.object({}),
        execute: witness.body(name),
      })
    const tools: ToolSet = { find: toolSearch(), read: deferred('read'), remove: deferred('remove') }
    const gate = createGate({ tools: fromAiSdk(tools), policy: { deny: ['remove'] } }) as unknown as Gate
    const model = mockModel([
      [{ name: 'find', input: { query: 'files' } }],
      [{ name: 'remove' }, { name: 'read', id: 'call-1' }],
      'Done.',
    ])
    await generateText({ model, prompt, stopWhen, ...(await guard(gate, VIEWER)) })
    assert.deepEqual(model.sent(), [['find'], ['find', 'read'], ['find', 'read']])
    assert.deepEqual(witness.ran, ['read'])
    assert.ok(!JSON.stringify(model.requests[1]?.prompt).includes('remove'))
  })
})
