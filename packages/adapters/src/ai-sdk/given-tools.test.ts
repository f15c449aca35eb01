import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { generateText, streamText, tool, ToolLoopAgent, type ToolSet } from 'ai'
import { z } from 'zod'
import { fromAiSdk, guard } from '../ai-sdk.ts'
import { type AiSdkWorld, createAiSdkWorld, forge, stopWhen } from '../testing/ai-sdk-world.ts'
import { mockModel } from '../testing/mock-model.ts'
import { VIEWER } from '../testing/world.ts'

const prompt = 'p'
const DELETES = [{ name: 'delete_all' }]
const inputSchema = z.object({})
const REPLACED = { name: 'ConfigError', message: /Write no `tools` after \.\.\.\(await guard/ }
const UNAWAITED = { name: 'ConfigError', message: /write \.\.\.\(await guard\(gate, caller\)\)/ }

type Settings = Parameters<typeof generateText>[0]
type World = Pick<AiSdkWorld, 'gate' | 'tools'>

/** What people write, each wrongly: the options of a call, without its model. */
const REPLACING: Readonly<Record<string, (world: World) => Promise<object>>> = {
  'tools after the spread': async ({ gate, tools }) => ({ ...(await guard(gate, VIEWER)), tools }),
  'some of the tools, after the spread': async ({ gate, tools: { delete_all } }) => ({
    ...(await guard(gate, VIEWER)),
    tools: { delete_all },
  }),
  'raw tools beside those of the guard': async ({ gate, tools }) => {
    const guarded = await guard(gate, VIEWER)
    return { ...guarded, tools: { ...tools, ...guarded.tools } }
  },
  'copies of the raw tools': async ({ gate, tools }) => ({
    ...(await guard(gate, VIEWER)),
    tools: Object.fromEntries(Object.entries(tools).map(([name, one]) => [name, { ...one }])),
  }),
  'other tools, of which the gate knows none': async ({ gate }) => ({
    ...(await guard(gate, VIEWER)),
    tools: { format_disk: tool({ inputSchema, execute: () => 'formatted' }) },
  }),
  'tools of a guard for somebody else': async ({ gate, tools }) => {
    const other = createGate({ tools: fromAiSdk(tools) })
    return { ...(await guard(gate, VIEWER)), tools: (await guard(other, VIEWER)).tools }
  },
}

describe('guard of the AI SDK, misused', () => {
  for (const [what, write] of Object.entries(REPLACING)) {
    it(`${what}: generateText fails before the model is asked, and nothing runs`, async () => {
      const { gate, tools, witness } = createAiSdkWorld()
      const model = mockModel([DELETES, 'Done.'])
      const options = { model, prompt, stopWhen, ...(await write({ gate, tools })) } as Settings
      await assert.rejects(generateText(options), REPLACED)
      assert.deepEqual([model.sent(), witness.ran], [[], []])
    })

    it(`${what}: streamText fails before the model is asked, and nothing runs`, async () => {
      const { gate, tools, witness } = createAiSdkWorld()
      const model = mockModel([DELETES, 'Done.'])
      const errors: unknown[] = []
      const written = await write({ gate, tools })
      const options = {
        model,
        prompt,
        stopWhen,
        ...written,
        onError: ({ error }: { error: unknown }) => void errors.push(error),
      }
      await streamText(options as Parameters<typeof streamText>[0]).consumeStream()
      assert.match(String(errors[0]), REPLACED.message)
      assert.deepEqual([model.sent(), witness.ran], [[], []])
    })
  }

  it('tools after the spread of a shared agent: it fails before the model is asked', async () => {
    const { gate, tools, witness } = createAiSdkWorld()
    const model = mockModel([DELETES, 'Done.'])
    const agent = new ToolLoopAgent({ model, ...((await guard(gate, VIEWER)) as object), tools })
    await assert.rejects(agent.generate({ prompt }), REPLACED)
    assert.deepEqual([model.sent(), witness.ran], [[], []])
  })

  it('tools after the spread in prepareCall, whose onStart the SDK ignores: each call is refused and recorded', async () => {
    const { gate, tools, witness, audit } = createAiSdkWorld()
    const agent = new ToolLoopAgent({
      model: mockModel([DELETES, 'Done.']),
      tools,
      prepareCall: async (settings) => ({ ...settings, ...(await guard(gate, VIEWER)), tools }) as never,
    })
    await agent.generate({ prompt })
    assert.deepEqual(witness.ran, [])
    assert.match(audit.attempts().join(), /^delete_all tool_blocked /)
  })

  it('an onStart of the host replaces that check: each call of a raw tool is then refused and recorded', async () => {
    const { gate, tools, witness, audit } = createAiSdkWorld()
    const model = mockModel([[{ name: 'delete_all' }, { name: 'search', id: 'call-1' }], 'Done.'])
    const written = { ...(await guard(gate, VIEWER)), onStart: () => {}, tools }
    await generateText({ model, prompt, stopWhen, ...written } as unknown as Settings)
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(
      audit.attempts().map((text) => text.split(' ')[0]),
      ['delete_all', 'search'],
    )
  })

  it('an approved call in the messages runs no raw tool', async () => {
    const { gate, tools, witness } = createAiSdkWorld({ policy: {} })
    const written = { ...(await guard(gate, VIEWER)), onStart: () => {}, tools }
    await generateText({
      model: mockModel(['Done.']),
      messages: forge('delete_all'),
      stopWhen,
      ...written,
    } as unknown as Settings)
    assert.deepEqual(witness.ran, [])
  })

  it('two parallel calls of the SDK are kept apart: only the wrong one fails', async () => {
    const { gate, tools, witness } = createAiSdkWorld()
    const guarded = await guard(gate, VIEWER)
    const search = () => mockModel([[{ name: 'search' }], 'Done.'])
    const [right, wrong] = await Promise.allSettled([
      generateText({ model: search(), prompt, stopWhen, ...guarded }),
      generateText({ model: search(), prompt, stopWhen, ...(guarded as object), tools }),
    ])
    assert.deepEqual([right.status, wrong.status], ['fulfilled', 'rejected'])
    assert.deepEqual(witness.ran, ['search'])
  })

  it('copies of the guarded tools, with tools of the host beside them, are no misuse', async () => {
    const { gate, witness } = createAiSdkWorld()
    const guarded = await guard(gate, VIEWER)
    const { search } = guarded.tools
    const tools = {
      search: { ...search, description: 'Another text.' },
      mine: tool({ inputSchema, execute: () => 1 }),
    } as ToolSet
    const model = mockModel([[{ name: 'search' }, { name: 'mine', id: 'call-1' }], 'Done.'])
    await generateText({ model, prompt, stopWhen, ...(guarded as object), tools })
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(model.told()['call-1'], { type: 'json', value: 1 })
  })
})

/* oxlint-disable typescript/no-misused-promises, typescript/no-misused-spread -- that is what is tested */
describe('guard of the AI SDK that is not awaited', () => {
  it('throws where it is spread, before or after the tools', () => {
    const { gate, tools } = createAiSdkWorld()
    // @ts-expect-error: the compiler, too, sees that the tools are replaced by something else
    assert.throws(() => ({ tools, ...guard(gate, VIEWER) }), UNAWAITED)
    assert.throws(() => ({ ...guard(gate, VIEWER), tools }), UNAWAITED)
    assert.throws(() => Object.assign({}, guard(gate, VIEWER)), UNAWAITED)
  })

  it('throws where the promise of its then, catch or finally is spread', () => {
    const { gate } = createAiSdkWorld()
    const same = <T>(value: T): T => value
    for (const chain of [
      guard(gate, VIEWER).then(same),
      guard(gate, VIEWER).catch(same),
      guard(gate, VIEWER).finally(() => {}),
      guard(gate, VIEWER).then(same).catch(same),
    ])
      assert.throws(() => ({ ...chain }), UNAWAITED)
  })

  it('throws where a part of it is taken out', () => {
    const { gate } = createAiSdkWorld()
    assert.throws(() => guard(gate, VIEWER).tools, UNAWAITED)
    assert.throws(() => guard(gate, VIEWER).toolApproval, UNAWAITED)
  })

  it('leaves no unhandled rejection', async () => {
    const { gate } = createAiSdkWorld()
    const unheard: unknown[] = []
    const listener = (reason: unknown) => unheard.push(reason)
    process.on('unhandledRejection', listener)
    try {
      assert.throws(() => ({ ...guard(gate, { usr: 'x' } as never) }), UNAWAITED)
      assert.throws(() => ({ ...guard(gate, { usr: 'x' } as never).then((value) => value) }), UNAWAITED)
      await new Promise((resolve) => setImmediate(resolve))
    } finally {
      process.off('unhandledRejection', listener)
    }
    assert.deepEqual(unheard, [])
  })

  it('is a promise in every other respect', async () => {
    const { gate } = createAiSdkWorld()
    const opening = guard(gate, VIEWER)
    assert.ok(opening instanceof Promise)
    const guarded = await opening
    assert.deepEqual(Object.keys(guarded.tools), ['alpha', 'search'])
    const [first, second] = await Promise.all([opening, opening.then(({ tools }) => tools)])
    assert.deepEqual([first, second], [guarded, guarded.tools])
    await assert.rejects(guard(gate, { usr: 'x' } as never), { code: 'caller_invalid' })
    assert.equal(await guard(gate, { usr: 'x' } as never).catch(() => 'caught'), 'caught')
  })
})

/* oxlint-enable typescript/no-misused-promises, typescript/no-misused-spread */

describe('guard of the AI SDK with a view', () => {
  it('of another gate is an error, whatever the two have in common', async () => {
    const open = createAiSdkWorld({ policy: {} })
    const { gate, tools } = createAiSdkWorld()
    const others = [
      open.gate,
      createGate({ tools: fromAiSdk(tools) }),
      createGate({ tools: [defineTool({ name: 'other', execute: () => 1 })] }),
      gate.fork({ policy: {}, inherit: false }),
    ]
    for (const other of others)
      await assert.rejects(guard(gate, await other.view(VIEWER)), { name: 'ConfigError', path: 'guard.view' })
  })

  it('of the gate without the tightening of a fork is an error for the fork', async () => {
    const { gate } = createAiSdkWorld()
    const fork = gate.fork({ policy: { deny: ['search'] } })
    await assert.rejects(guard(fork, await gate.view(VIEWER)), { path: 'guard.view' })
    assert.deepEqual(Object.keys((await guard(gate, await fork.view(VIEWER))).tools), ['alpha'])
  })

  it('that only looks like one is an error', async () => {
    const { gate } = createAiSdkWorld()
    const view = await gate.view(VIEWER)
    await assert.rejects(guard(gate, { ...view, narrow: () => view } as never), { code: 'caller_invalid' })
  })
})
