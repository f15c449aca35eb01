import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, type Gate, type Policy } from '@toolgate/core'
import { dynamicTool, generateText, type JSONSchema7, jsonSchema, tool, type ToolSet } from 'ai'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import { z as z3 } from 'zod/v3'
import { fromAiSdk, guard, type GuardOptions } from '../ai-sdk.ts'
import { stopWhen } from '../testing/ai-sdk-world.ts'
import { mockModel } from '../testing/mock-model.ts'
import { createTestAudit, VIEWER } from '../testing/world.ts'

const execute = (input: unknown) => input
const object: JSONSchema7 = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }
const isNumbered = (value: unknown) => typeof (value as { n?: unknown }).n === 'number'
const validation = (value: unknown) =>
  isNumbered(value)
    ? ({ success: true, value } as const)
    : ({ success: false, error: new Error('n is no number') } as const)

const schemas: Record<string, ToolSet[string]['inputSchema']> = {
  zod: z.object({ n: z.number() }),
  zod3: z3.object({ n: z3.number() }),
  'JSON Schema': jsonSchema(object),
  'lazy schema': () => jsonSchema(object),
  'schema with a validation': jsonSchema(object, { validate: validation }),
  'schema with a validation that takes its time': jsonSchema(object, { validate: async (value) => validation(value) }),
}

async function runOne(tools: ToolSet, input: unknown, options: GuardOptions = {}, policy: Policy = {}) {
  const audit = createTestAudit()
  const gate = createGate({ tools: fromAiSdk(tools), audit, policy: policy as object }) as unknown as Gate
  const warnings: string[] = []
  const [name = ''] = Object.keys(tools)
  const model = mockModel([[{ name, input }], 'Done.'])
  const guarded = await guard(gate, VIEWER, { onWarning: (text) => warnings.push(text), ...options })
  const result = await generateText({ model, prompt: 'p', stopWhen, ...guarded })
  return { gate, audit, model, warnings, result, told: model.told()['call-0'] as { type: string; value: unknown } }
}

/** Schemas of three libraries that turn a text into a date. ArkType changes its input in place. */
const DATES = {
  zod: z.object({ at: z.string().transform((text) => new Date(text)) }),
  valibot: toStandardJsonSchema(
    v.object({
      at: v.pipe(
        v.string(),
        v.transform((text) => new Date(text)),
      ),
    }),
  ),
  ArkType: type({ at: 'string.date.parse' }),
}

describe('fromAiSdk', () => {
  for (const [kind, inputSchema] of Object.entries(schemas))
    it(`has the gate validate by a ${kind}, and sends what the SDK alone would send`, async () => {
      const tools = { count: tool({ description: 'Counts.', inputSchema, execute }) }
      const right = await runOne(tools, { n: 1 })
      assert.deepEqual(right.told, { type: 'json', value: { n: 1 } })
      const wrong = await runOne(tools, { n: 'x' })
      assert.match(String(wrong.told.value), /^TOOL_CALL_BLOCKED: /)
      const isLate = kind.endsWith('takes its time')
      assert.deepEqual(wrong.audit.attempts(), [`count tool_blocked ${isLate ? 'hook_denied' : 'input_invalid'}`])
      const alone = mockModel(['Done.'])
      await generateText({ model: alone, prompt: 'p', tools })
      assert.equal(JSON.stringify(right.model.requests[0]?.tools), JSON.stringify(alone.requests[0]?.tools))
    })

  it('finishes an asynchronous validation even without the SDK in front of the gate', async () => {
    const tools = {
      count: tool({ inputSchema: schemas['schema with a validation that takes its time'], execute } as never),
    }
    const view = await createGate({ tools: fromAiSdk(tools as ToolSet) }).view(VIEWER)
    assert.deepEqual((await view.call({ tool: 'count', input: { n: 'x' } })).status, 'failed')
    assert.deepEqual((await view.call({ tool: 'count', input: { n: 1 } })).text, '{"n":1}')
  })

  it('passes the tool the output of its schema', async () => {
    const inputSchema = z.object({ n: z.string().transform(Number), unit: z.string().default('m') })
    const { told } = await runOne({ count: tool({ inputSchema, execute }) }, { n: '5', more: 1 })
    assert.deepEqual(told, { type: 'json', value: { n: 5, unit: 'm' } })
  })

  for (const [library, inputSchema] of Object.entries(DATES))
    it(`passes the tool what JSON cannot express, and decides what the model wrote: ${library}`, async () => {
      const seen: unknown[] = []
      const count = tool({ inputSchema, execute: (input: unknown) => void seen.push(input) } as never)
      const policy = { deny: [{ match: 'count', input: "input.at == '2026-01-02'" }] }
      await runOne({ count }, { at: '2026-01-01' }, {}, policy)
      const denied = await runOne({ count }, { at: '2026-01-02' }, {}, policy)
      assert.deepEqual(seen, [{ at: new Date('2026-01-01') }])
      assert.deepEqual(denied.audit.attempts(), ['count tool_blocked input_denied'])
    })

  it('takes dynamic tools, as those of an MCP client are', async () => {
    const count = dynamicTool({ inputSchema: jsonSchema(object), execute: async (input) => input })
    const { told, result } = await runOne({ count }, { n: 1 })
    assert.deepEqual(told, { type: 'json', value: { n: 1 } })
    assert.equal(result.steps[0]?.dynamicToolCalls.length, 1)
  })

  it('keeps all else that a tool is to the SDK', async () => {
    const inputExamples = [{ input: { n: 1 } }]
    const providerOptions = { openai: { x: 1 } }
    const count = tool({
      description: ({ context }: { context: { unit: string } | undefined }) =>
        `Counts in ${context?.unit ?? 'metres'}.`,
      inputSchema: z.object({ n: z.number() }),
      contextSchema: z.object({ unit: z.string() }),
      strict: true,
      inputExamples,
      providerOptions,
      metadata: { of: 'ours' },
      execute: (input) => input,
    })
    const gate = createGate({ tools: fromAiSdk({ count }) })
    const model = mockModel(['Done.'])
    const toolsContext = { count: { unit: 'feet' } }
    await generateText({ model, prompt: 'p', toolsContext, ...(await guard(gate, VIEWER)) })
    const { inputSchema: _, ...sent } = (model.requests[0]?.tools?.[0] ?? {}) as Record<string, unknown>
    assert.deepEqual(sent, {
      type: 'function',
      name: 'count',
      description: 'Counts in feet.',
      inputExamples,
      providerOptions,
      strict: true,
    })
    assert.equal(gate.catalog.get('count')?.description, 'Counts in metres.')
  })

  it('accepts an overlay of tags, scopes and groups; annotations of a server only tighten', async () => {
    const hinted = (annotations: object): ToolSet[string] =>
      ({ ...tool({ inputSchema: jsonSchema(object), execute }), metadata: { annotations } }) as ToolSet[string]
    const tools = { safe: hinted({ readOnlyHint: true }), wild: hinted({ destructiveHint: true }), known: hinted({}) }
    const gate = createGate({
      tools: fromAiSdk(tools, { known: { tags: ['read'], annotations: { readOnlyHint: true } } }),
      policy: { allow: ['hint:read-only', 'tag:none'] },
    })
    assert.deepEqual((await gate.view(VIEWER)).ids, ['known'])
    assert.deepEqual(gate.catalog.get('known')?.tags, ['read'])
    const destructive = createGate({ tools: fromAiSdk(tools), policy: { deny: ['hint:destructive'] } })
    assert.ok(!(await destructive.view(VIEWER)).has('wild'))
  })

  it('is understood by version 5 of the SDK too, which knows a schema that validates by another mark', async () => {
    const tools = { count: tool({ inputSchema: z.object({ n: z.number() }), execute: (input) => input }) }
    const guarded = await guard(createGate({ tools: fromAiSdk(tools) }), VIEWER)
    const schema = guarded.tools.count.inputSchema as unknown as Record<symbol, unknown>
    assert.deepEqual([schema[Symbol.for('vercel.ai.schema')], schema[Symbol.for('vercel.ai.validator')]], [true, true])
    assert.equal(guarded.experimental_repairToolCall, guarded.repairToolCall)
  })

  it('refuses invalid tools and overlays, by name', () => {
    const bad = (inputSchema: unknown): ToolSet => ({ count: { inputSchema, execute } as unknown as ToolSet[string] })
    const cases: [() => unknown, RegExp][] = [
      [() => fromAiSdk({ count: null } as unknown as ToolSet), /tools\.count: a tool must be an object/],
      [() => fromAiSdk(bad(jsonSchema(Promise.resolve(object)))), /tool "count": inputSchema returns a promise/],
      [() => fromAiSdk(bad(z.object({ when: z.date() }))), /tool "count": inputSchema has no JSON Schema: /],
      [() => fromAiSdk(bad({ type: 'object' })), /tool "count": inputSchema/],
      [() => fromAiSdk({}, { count: {} } as never), /overlay\.count/],
      [() => createGate({ tools: fromAiSdk({ 'a b': tool({ inputSchema: z.object({}), execute }) }) }), /"a b"/],
    ]
    for (const [make, message] of cases) assert.throws(make, (error: Error) => message.test(error.message))
  })
})

describe('tools that are not executed here', () => {
  const elsewhere: ToolSet = {
    ask_user: tool({ inputSchema: z.object({}), outputSchema: z.string() }),
    web: {
      type: 'provider',
      id: 'openai.web_search',
      args: {},
      isProviderExecuted: true,
      inputSchema: z.object({}),
    } as unknown as ToolSet[string],
  }

  it('are not offered, because nothing can stop them, and the developer is warned', async () => {
    const { model, warnings } = await runOne(elsewhere, {})
    assert.equal(model.requests[0]?.tools, undefined)
    assert.deepEqual(
      warnings.map((text) => text.slice(0, 24)),
      ['"ask_user" is not offere', '"web" is not offered: it'],
    )
  })

  it('are offered where they are accepted, and only to whom may see them', async () => {
    const { model, warnings } = await runOne(elsewhere, {}, { acceptUnenforceable: ['web'] })
    assert.deepEqual(model.sent()[0], ['web'])
    assert.deepEqual(warnings.length, 1)
    const gate = createGate({ tools: fromAiSdk(elsewhere), policy: { deny: ['web'] } }) as unknown as Gate
    const denied = mockModel(['Done.'])
    await generateText({ model: denied, prompt: 'p', ...(await guard(gate, VIEWER, { acceptUnenforceable: true })) })
    assert.deepEqual(denied.sent(), [['ask_user']])
  })

  it('are handed to the client by a call of the gate, which counts and records it, and may refuse it', async () => {
    const audit = createTestAudit()
    const gate = createGate({ tools: fromAiSdk(elsewhere), audit, limits: 'ask_user:1/60' }) as unknown as Gate
    const once = async () => {
      const model = mockModel([[{ name: 'ask_user' }], 'Done.'])
      const result = await generateText({
        model,
        prompt: 'p',
        stopWhen,
        ...(await guard(gate, VIEWER, { acceptUnenforceable: true })),
      })
      return result.text
    }
    assert.equal(await once(), '', 'the SDK stops and leaves the call to the client')
    assert.equal(await once(), 'Done.', 'the model was told that it may not')
    assert.deepEqual(audit.attempts(), [
      'ask_user tool_call',
      'ask_user tool_result',
      'ask_user tool_rate_limited rate_limited',
    ])
  })
})
