import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { withTools } from '@toolgate/core/steps'
import { generateText, type LanguageModel, streamText } from 'ai'
import { guard, type GuardOptions, maskingFetch } from '../ai-sdk.ts'
import { createAiSdkWorld, stopWhen } from '../testing/ai-sdk-world.ts'
import { mockModel } from '../testing/mock-model.ts'
import { VIEWER } from '../testing/world.ts'

interface Body {
  readonly tools?: readonly { readonly name: string }[]
  readonly tool_choice?: unknown
  readonly toolConfig?: unknown
}

interface Wire {
  readonly bodies: readonly Body[]
  readonly fetch: typeof fetch
}

/** Answers the requests with these bodies in order, and keeps the requests. */
function createWire(answers: readonly object[]): Wire {
  const bodies: Body[] = []
  return {
    bodies,
    fetch: async (_, init) => {
      const answer = answers[bodies.push(JSON.parse(init?.body as string) as Body) - 1]
      return Response.json(answer)
    },
  }
}

const openAiBase = { id: 'r', created_at: 1, model: 'gpt-5', usage: { input_tokens: 1, output_tokens: 1 } }
const openAiCall = (name: string, id = name) => ({
  type: 'function_call',
  id: `fc-${id}`,
  call_id: id,
  name,
  arguments: '{}',
})
const openAiText = {
  type: 'message',
  role: 'assistant',
  id: 'm',
  content: [{ type: 'output_text', text: 'Done.', annotations: [] }],
}

const geminiAnswer = (part: object) => ({
  candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
})

async function run(model: LanguageModel, options: GuardOptions) {
  const world = createAiSdkWorld()
  const warnings: string[] = []
  const guarded = await guard(world.gate, VIEWER, { onWarning: (text) => warnings.push(text), ...options })
  await generateText({ model, prompt: 'p', stopWhen, ...guarded })
  return { ...world, warnings }
}

const searchFirst: GuardOptions['prepareStep'] = ({ stepNumber }) =>
  stepNumber === 0 ? withTools('search') : undefined

describe('mode "mask" of guard', () => {
  it('sends OpenAI the same tools in each step, allows those of the step, and runs no other', async () => {
    const wire = createWire([
      { ...openAiBase, output: [openAiCall('alpha'), openAiCall('search')] },
      { ...openAiBase, output: [openAiText] },
    ])
    const openai = createOpenAI({ apiKey: 'k', fetch: wire.fetch })
    const { witness, audit } = await run(openai('gpt-5'), {
      mode: 'mask',
      provider: 'openai',
      prepareStep: searchFirst,
    })
    const [first, second] = wire.bodies
    assert.equal(JSON.stringify(first?.tools), JSON.stringify(second?.tools))
    assert.deepEqual(
      first?.tools?.map(({ name }) => name),
      ['alpha', 'search'],
    )
    assert.deepEqual(first?.tool_choice, {
      type: 'allowed_tools',
      mode: 'auto',
      tools: [{ type: 'function', name: 'search' }],
    })
    assert.equal(second?.tool_choice, 'auto')
    assert.deepEqual(witness.ran, ['search'])
    assert.ok(audit.attempts().includes('alpha tool_blocked step_inactive'))
    assert.match(JSON.stringify(second), /alpha is not active in this step\. Available tools: search\./)
  })

  it('passes on to OpenAI the choices that yours forces or allows, and nothing beyond the step', async () => {
    const choices: [object, unknown][] = [
      [{ toolChoice: 'required' }, { mode: 'required', tools: ['alpha', 'search'] }],
      [{ toolChoice: { type: 'tool', toolName: 'search' } }, { mode: 'required', tools: ['search'] }],
      [
        { providerOptions: { openai: { allowedTools: { toolNames: ['alpha', 'delete_all'] } } } },
        { mode: 'auto', tools: ['alpha'] },
      ],
      [{ activeTools: [] }, 'none'],
    ]
    for (const [change, expected] of choices) {
      const wire = createWire([{ ...openAiBase, output: [openAiText] }])
      const world = createAiSdkWorld({ policy: [] })
      const guarded = await guard(world.gate, VIEWER, {
        mode: 'mask',
        provider: 'openai',
        prepareStep: () => ({ activeTools: ['alpha', 'search'], ...change }),
      })
      const model = createOpenAI({ apiKey: 'k', fetch: wire.fetch })('gpt-5')
      await generateText({ model, prompt: 'p', ...guarded }).catch(() => {})
      const [body] = wire.bodies
      const choice = body?.tool_choice as { mode: string; tools: { name: string }[] } | string
      assert.equal(body?.tools?.length, 3)
      assert.deepEqual(
        typeof choice === 'string' ? choice : { mode: choice.mode, tools: choice.tools.map(({ name }) => name) },
        expected,
      )
    }
  })

  it('has Gemini validate against the functions of the step, by the fetch of its provider', async () => {
    const wire = createWire([
      geminiAnswer({ functionCall: { name: 'alpha', args: {} } }),
      geminiAnswer({ text: 'Done.' }),
    ])
    const google = createGoogle({ apiKey: 'k', fetch: maskingFetch(wire.fetch) })
    const { witness, warnings } = await run(google('gemini-2.5-flash'), {
      mode: 'mask',
      provider: 'google',
      prepareStep: searchFirst,
    })
    const [first, second] = wire.bodies
    assert.equal(JSON.stringify(first?.tools), JSON.stringify(second?.tools))
    assert.deepEqual(first?.toolConfig, {
      functionCallingConfig: { mode: 'VALIDATED', allowedFunctionNames: ['search'] },
    })
    assert.deepEqual(second?.toolConfig, { functionCallingConfig: { mode: 'AUTO' } })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(warnings, [])
  })

  it('keeps a choice that yours forces on Gemini', async () => {
    const wire = createWire([
      geminiAnswer({ functionCall: { name: 'search', args: {} } }),
      geminiAnswer({ text: 'Done.' }),
    ])
    const google = createGoogle({ apiKey: 'k', fetch: maskingFetch(wire.fetch) })
    const prepareStep: GuardOptions['prepareStep'] = ({ stepNumber }) =>
      stepNumber === 0 ? { activeTools: ['search'], toolChoice: 'required' } : { activeTools: [] }
    const { witness } = await run(google('gemini-2.5-flash'), { mode: 'mask', provider: 'google', prepareStep })
    assert.deepEqual(
      wire.bodies.map(({ toolConfig }) => toolConfig),
      [
        { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['search'] } },
        { functionCallingConfig: { mode: 'NONE' } },
      ],
    )
    assert.deepEqual(witness.ran, ['search'])
  })

  it('warns if Gemini does not get the mask, and enforces it all the same', async () => {
    const wire = createWire([
      geminiAnswer({ functionCall: { name: 'alpha', args: {} } }),
      geminiAnswer({ text: 'Done.' }),
    ])
    const google = createGoogle({ apiKey: 'k', fetch: wire.fetch })
    const { witness, warnings } = await run(google('gemini-2.5-flash'), {
      mode: 'mask',
      provider: 'google',
      prepareStep: searchFirst,
    })
    assert.deepEqual(witness.ran, [])
    assert.match(warnings.join(), /maskingFetch/)
  })

  it('masks a stream, too', async () => {
    const { gate } = createAiSdkWorld()
    const model = mockModel(['Done.'])
    const options = { mode: 'mask', provider: 'google', prepareStep: () => withTools('search') } as const
    const result = streamText({ model, prompt: 'p', ...(await guard(gate, VIEWER, options)) })
    assert.equal(await result.text, 'Done.')
    assert.deepEqual(model.sent(), [['alpha', 'search']])
  })

  it('filters where nobody says whose means there are', async () => {
    const model = mockModel(['Done.'])
    const { warnings } = await run(model, { mode: 'mask', prepareStep: searchFirst })
    assert.deepEqual(model.sent(), [['search']])
    assert.match(warnings.join(), /the tools are filtered/)
  })

  it('never sends tools that the run does not see, or no longer sees', async () => {
    const world = createAiSdkWorld()
    const model = mockModel([[{ name: 'search' }], 'Done.'])
    const guarded = await guard(world.gate, VIEWER, {
      mode: 'mask',
      provider: 'openai',
      prepareStep({ stepNumber }) {
        if (stepNumber === 0) world.gate.setPolicy({ deny: ['delete_all', 'alpha'] })
        return { activeTools: ['search', 'delete_all'] }
      },
    })
    await generateText({ model, prompt: 'p', stopWhen, ...guarded })
    assert.deepEqual(model.sent(), [['alpha', 'search'], ['search']])
    assert.deepEqual(model.requests[0]?.providerOptions, { openai: { allowedTools: { toolNames: ['search'] } } })
  })
})
