import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, type Gate } from '@toolgate/core'
import { memoryAvailability } from '@toolgate/core/groups'
import { unchanged, withTools } from '@toolgate/core/steps'
import { generateText, tool, type ToolSet } from 'ai'
import { z } from 'zod'
import { fromAiSdk, guard, type GuardOptions } from '../ai-sdk.ts'
import { createAiSdkWorld, stopWhen } from '../testing/ai-sdk-world.ts'
import { mockModel, type Turn } from '../testing/mock-model.ts'
import { ADMIN, VIEWER } from '../testing/world.ts'

const search = [{ name: 'search' }]

async function run(options: GuardOptions, turns: readonly Turn[], caller = VIEWER) {
  const world = createAiSdkWorld()
  const model = mockModel(turns)
  const warnings: string[] = []
  const guarded = await guard(world.gate, caller, { onWarning: (text) => warnings.push(text), ...options })
  const result = await generateText({ model, prompt: 'p', stopWhen, ...guarded })
  return { ...world, model, warnings, result }
}

describe('prepareStep of guard', () => {
  it('narrows one step, and the next sees everything again', async () => {
    const { model, witness, audit } = await run(
      { prepareStep: ({ stepNumber }) => (stepNumber === 0 ? withTools('search') : unchanged()) },
      [[{ name: 'alpha' }, { name: 'search' }], 'Done.'],
    )
    assert.deepEqual(model.sent(), [['search'], ['alpha', 'search']])
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(model.told()['call-0'], {
      type: 'error-text',
      value: 'alpha is not active in this step. Available tools: search.',
    })
    assert.ok(audit.attempts().includes('alpha tool_blocked step_inactive'))
    assert.deepEqual(
      audit.records.map(({ step }) => step),
      [0, 0, 0],
    )
  })

  it('sends no tools where there are none for the step', async () => {
    const { model, audit } = await run({ prepareStep: () => ({ activeTools: [] }) }, [search, 'Done.'])
    assert.equal(model.requests[0]?.tools, undefined)
    assert.deepEqual(audit.attempts(), ['search tool_blocked step_inactive'])
  })

  it('sends and runs nothing after an invalid answer', async () => {
    for (const answer of [5, 'search', ['search'], { activeTools: null }, { activeTools: 'search' }]) {
      const world = createAiSdkWorld()
      const model = mockModel([search, 'Done.'])
      const guarded = await guard(world.gate, VIEWER, { prepareStep: () => answer as never })
      await assert.rejects(generateText({ model, prompt: 'p', stopWhen, ...guarded }), { code: 'config_invalid' })
      assert.deepEqual([model.requests.length, world.witness.ran], [0, []])
    }
  })

  it('sends and runs nothing after a key that neither the SDK nor Toolgate knows', async () => {
    for (const [key, meant] of [
      ['activTools', /"activeTools"/],
      ['tools', /unknown key/],
    ] as const) {
      const world = createAiSdkWorld()
      const model = mockModel([search, 'Done.'])
      const guarded = await guard(world.gate, VIEWER, { prepareStep: () => ({ [key]: [] }) as never })
      const running = generateText({ model, prompt: 'p', stopWhen, ...guarded })
      await assert.rejects(running, { path: `prepareStep.${key}`, message: meant })
      assert.deepEqual([model.requests.length, world.witness.ran], [0, []])
    }
  })

  it('continues if a listener throws', async (t) => {
    const unheard: unknown[] = []
    const hear = (error: unknown) => unheard.push(error)
    process.on('unhandledRejection', hear)
    t.after(() => process.off('unhandledRejection', hear))
    const throws = (): never => {
      throw new Error('thrown')
    }
    const rejects = (): unknown => Promise.reject(new Error('rejected'))
    for (const listener of [throws, rejects]) {
      const prepareStep = () => ({ activeTools: ['search', 'delete_all'] })
      const world = createAiSdkWorld()
      const guarded = await guard(world.gate, VIEWER, { prepareStep, onCall: listener, onWarning: listener })
      const { text } = await generateText({ model: mockModel([search, 'Done.']), prompt: 'p', stopWhen, ...guarded })
      assert.deepEqual([text, world.witness.ran], ['Done.', ['search']])
    }
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(unheard, [])
  })

  it('cannot widen, and warns the developer of hidden names', async () => {
    const { model, witness, warnings } = await run(
      { activeTools: ['search'], prepareStep: () => ({ activeTools: ['search', 'alpha', 'delete_all'] }) },
      [[{ name: 'alpha' }, { name: 'delete_all' }], 'Done.'],
    )
    assert.deepEqual(model.sent(), [['search'], ['search']])
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(
      warnings.map((text) => text.replace(/: .*/, '')),
      [
        '"alpha" is not visible in step 0',
        '"delete_all" is not visible in step 0',
        '"alpha" is not visible in step 1',
        '"delete_all" is not visible in step 1',
      ],
    )
  })

  it('names the nearest tools for an unknown name, at once', async () => {
    const unknown = {
      name: 'UnknownToolError',
      message: 'Unknown tool "serach". Did you mean "search", "alpha", "delete_all"?',
    }
    await assert.rejects(run({ prepareStep: () => ({ activeTools: ['serach'] }) }, ['Done.']), unknown)
    await assert.rejects(run({ activeTools: ['serach'] }, ['Done.']), unknown)
  })

  it('gets the caller, the visible tools and the results of earlier calls', async () => {
    const seen: unknown[] = []
    await run(
      {
        prepareStep({ caller, visibleTools, hasUsedTool, previousToolCalls, steps }) {
          seen.push([caller.user, visibleTools.length, steps.length, hasUsedTool('search'), hasUsedTool('delete_all')])
          seen.push(previousToolCalls().map(({ tool: id, callId, status }) => `${id} ${callId} ${status}`))
          return undefined
        },
      },
      [[{ name: 'search' }, { name: 'delete_all' }, { name: 'search', input: { q: 1 } }], 'Done.'],
    )
    assert.deepEqual(seen, [
      ['vera', 2, 0, false, false],
      [],
      ['vera', 2, 1, true, false],
      ['search call-0 done', 'delete_all call-1 refused', 'search call-2 refused'],
    ])
  })

  it('does not count a call whose tool answered an MCP result with isError', async () => {
    const seen: boolean[] = []
    const execute = () => ({ content: [{ type: 'text', text: 'no such page' }], isError: true })
    const gate = createGate({ tools: fromAiSdk({ fetch: tool({ inputSchema: z.object({}), execute }) }) })
    const guarded = await guard(gate, VIEWER, {
      prepareStep({ hasUsedTool, previousToolCalls }) {
        seen.push(
          hasUsedTool('fetch'),
          previousToolCalls().some(({ status }) => status === 'failed'),
        )
        return undefined
      },
    })
    await generateText({ model: mockModel([[{ name: 'fetch' }], 'Done.']), prompt: 'p', stopWhen, ...guarded })
    assert.deepEqual(seen, [false, false, false, true])
  })

  it('passes on its other fields: the model, instructions, call options, context', async () => {
    const other = mockModel(['From the other.'])
    const { model, result } = await run(
      {
        prepareStep: () => ({
          model: other,
          instructions: 'Be short.',
          options: { temperature: 0.5 },
          context: { a: 1 },
        }),
      },
      [],
    )
    assert.equal(model.requests.length, 0)
    assert.equal(result.text, 'From the other.')
    assert.equal(other.requests[0]?.temperature, 0.5)
    assert.deepEqual(other.requests[0]?.prompt[0]?.content, 'Be short.')
    assert.deepEqual(result.steps[0]?.runtimeContext, { a: 1 })
  })

  it('writes the run, the step and the model of each call into the audit', async () => {
    const { audit } = await run({ runId: 'run-1' }, [search, search, 'Done.'])
    assert.deepEqual(
      audit.records
        .filter(({ event }) => event === 'tool_call')
        .map(({ run_id, step, model }) => [run_id, step, model]),
      [
        ['run-1', 0, 'mock-model-id'],
        ['run-1', 1, 'mock-model-id'],
      ],
    )
  })

  it('accepts an existing view, and refuses options that only a new one could take', async () => {
    const { gate } = createAiSdkWorld()
    const view = (await gate.view(ADMIN)).narrow({ activeTools: ['delete_all', 'search'] })
    const model = mockModel(['Done.'])
    await generateText({ model, prompt: 'p', ...(await guard(gate, view, { activeTools: ['search', 'alpha'] })) })
    assert.deepEqual(model.sent(), [['search']])
    await assert.rejects(guard(gate, view, { visibility: ['search'] }), { name: 'ConfigError' })
  })
})

describe('guard of tools that open during a run', () => {
  const session = { ...VIEWER, session: 's1' }
  it('offers an opened group from the next step on, in the order of the ids, also to a shared run', async () => {
    const tools: ToolSet = {
      open: tool({ inputSchema: z.object({}), execute: () => gate.locks.request(session, 'web') }),
      click: tool({ inputSchema: z.object({}), execute: () => 'clicked' }),
      zap: tool({ inputSchema: z.object({}), execute: () => 'zapped' }),
    }
    const gate = createGate({
      tools: fromAiSdk(tools, { click: { groups: ['web'] } }),
      groups: { web: { tools: [], unlock: 'request' } },
    }) as unknown as Gate
    const model = mockModel([[{ name: 'click' }, { name: 'open' }], [{ name: 'click' }], 'Done.'])
    const result = await generateText({ model, prompt: 'p', stopWhen, ...(await guard(gate, session)) })
    assert.deepEqual(model.sent(), [
      ['open', 'request_tools', 'zap'],
      ['click', 'open', 'zap'],
      ['click', 'open', 'zap'],
    ])
    const [, second] = result.steps
    assert.deepEqual(
      second?.toolResults.map(({ output }) => output),
      ['clicked'],
    )
    assert.match(JSON.stringify(model.requests[1]?.prompt), /click is locked/)
  })

  it('offers request_tools, which opens the tools that the model asks for', async () => {
    const tools: ToolSet = {
      click: tool({ inputSchema: z.object({}), execute: () => 'clicked' }),
      zap: tool({ inputSchema: z.object({}), execute: () => 'zapped' }),
    }
    const gate = createGate({
      tools: fromAiSdk(tools, { click: { groups: ['web'] } }),
      groups: { web: { tools: [], unlock: 'request' } },
    }) as unknown as Gate
    const turns: readonly Turn[] = [
      [{ name: 'click' }],
      [{ name: 'request_tools', input: { group: 'web' } }],
      [{ name: 'click' }],
      'Done.',
    ]
    const model = mockModel(turns)
    const result = await generateText({ model, prompt: 'p', stopWhen, ...(await guard(gate, session)) })
    assert.deepEqual(model.sent(), [
      ['request_tools', 'zap'],
      ['request_tools', 'zap'],
      ['click', 'zap'],
      ['click', 'zap'],
    ])
    assert.match(JSON.stringify(model.requests[1]?.prompt), /click is locked\. Call request_tools/)
    assert.deepEqual(
      result.steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output)),
      ['The group "web" is open. In your list from your next step on: click.', 'clicked'],
    )
  })

  it('removes a tool while it is unavailable, and restores it', async () => {
    const availability = memoryAvailability({ web: { available: true } })
    const tools = {
      flip: tool({ inputSchema: z.object({}), execute: () => flip() }),
      browse: tool({ inputSchema: z.object({}), execute: () => 'browsed' }),
    }
    const gate = createGate({
      tools: fromAiSdk(tools, { browse: { groups: ['web'] } }),
      groups: { web: { tools: [], visibility: 'conditional' } },
      availability,
    })
    let isUp = true
    const flip = () => {
      isUp = !isUp
      availability.set('web', isUp ? { available: true } : { available: false, reason: 'no browser runs' })
      return isUp
    }
    const model = mockModel([[{ name: 'flip' }], [{ name: 'browse' }, { name: 'flip' }], [{ name: 'browse' }], 'Done.'])
    await generateText({ model, prompt: 'p', stopWhen, ...(await guard(gate, VIEWER)) })
    assert.deepEqual(model.sent(), [['browse', 'flip'], ['flip'], ['browse', 'flip'], ['browse', 'flip']])
    assert.match(JSON.stringify(model.requests[2]?.prompt), /browse is unavailable: no browser runs\./)
    assert.match(JSON.stringify(model.requests[3]?.prompt), /browsed/)
  })
})
