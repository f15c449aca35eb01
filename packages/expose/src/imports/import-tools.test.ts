import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ConfigError, createGate, defineTool, type JsonSchema, type Tool } from '@toolgate/core'
import { expose } from '../expose.ts'
import type { ExposeOptions, ExposeTarget } from '../options.ts'
import {
  fromAnthropicTools,
  fromBedrockTools,
  fromGeminiTools,
  fromOpenAiTools,
  type ImportedTools,
  type ImportOptions,
} from './import-tools.ts'
import { runs } from '../../../testing/src/runs.ts'

const RUNS = runs(200, 5000)
const SCHEMA: JsonSchema = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] }

type From = (definitions: readonly object[], options?: ImportOptions) => ImportedTools
const FROM: readonly (readonly [ExposeTarget, From, ExposeOptions])[] = [
  ['openai-chat', fromOpenAiTools, {}],
  ['openai-chat', fromOpenAiTools, { strict: true }],
  ['openai-responses', fromOpenAiTools, {}],
  ['openai-responses', fromOpenAiTools, { strict: true }],
  ['anthropic', fromAnthropicTools, {}],
  ['anthropic', fromAnthropicTools, { strict: true }],
  ['bedrock', fromBedrockTools, {}],
  ['bedrock', fromBedrockTools, { strict: true }],
  ['gemini', fromGeminiTools, {}],
  ['gemini', fromGeminiTools, { schemas: 'openapi' }],
]

/** What each provider's definitions are read as. */
const ROWS: readonly (readonly [shows: string, From, definition: object, expected: Partial<Tool>, lost: string[]])[] = [
  [
    'a function of Chat Completions',
    fromOpenAiTools,
    { type: 'function', function: { name: 'web__search', description: 'Searches.', parameters: SCHEMA, strict: true } },
    { id: 'web:search', description: 'Searches.', inputSchema: SCHEMA, strict: true },
    [],
  ],
  [
    'a function of Responses, with what a tool has no place for',
    fromOpenAiTools,
    { type: 'function', name: 'now', parameters: null, strict: false, output_schema: SCHEMA, defer_loading: true },
    { id: 'now', inputSchema: { type: 'object', properties: {} }, outputSchema: SCHEMA, strict: false },
    ['now defer_loading true'],
  ],
  [
    'a function in a namespace of Responses',
    fromOpenAiTools,
    { type: 'namespace', name: 'crm', tools: [{ type: 'function', name: 'get_profile', parameters: SCHEMA }] },
    { id: 'crm:get_profile', inputSchema: SCHEMA, strict: undefined },
    [],
  ],
  [
    'a tool of Messages',
    fromAnthropicTools,
    { name: 'search', input_schema: SCHEMA, strict: true, cache_control: { type: 'ephemeral' } },
    { id: 'search', inputSchema: SCHEMA, strict: true },
    ['search cache_control {"type":"ephemeral"}'],
  ],
  [
    'a tool of Converse',
    fromBedrockTools,
    { toolSpec: { name: 'search', description: 'Searches.', inputSchema: { json: SCHEMA }, strict: true } },
    { id: 'search', description: 'Searches.', inputSchema: SCHEMA, strict: true },
    [],
  ],
  [
    'a function of Gemini',
    fromGeminiTools,
    { functionDeclarations: [{ name: '_2fa', parametersJsonSchema: SCHEMA, behavior: 'NON_BLOCKING' }] },
    { id: '2fa', inputSchema: SCHEMA },
    ['2fa behavior "NON_BLOCKING"'],
  ],
  [
    'a function of Gemini in the OpenAPI form',
    fromGeminiTools,
    {
      name: 'search',
      parameters: {
        type: 'OBJECT',
        propertyOrdering: ['q'],
        properties: {
          q: { type: 'STRING', minLength: '1', nullable: true, example: 'gates' },
          kind: { type: 'STRING', format: 'enum', enum: ['a', 'b'], nullable: true },
          list: { type: 'ARRAY', maxItems: '9', items: { anyOf: [{ type: 'INTEGER' }, { type: 'BOOLEAN' }] } },
          any: { type: 'TYPE_UNSPECIFIED' },
        },
      },
    },
    {
      inputSchema: {
        type: 'object',
        properties: {
          q: { type: ['string', 'null'], minLength: 1, examples: ['gates'] },
          kind: { type: ['string', 'null'], format: 'enum', enum: ['a', 'b', null] },
          list: { type: 'array', maxItems: 9, items: { anyOf: [{ type: 'integer' }, { type: 'boolean' }] } },
          any: {},
        },
      },
    },
    ['search propertyOrdering ["q"]'],
  ],
]

describe('fromOpenAiTools, fromAnthropicTools, fromGeminiTools, fromBedrockTools', () => {
  for (const [shows, from, definition, expected, lost] of ROWS) {
    it(`read ${shows}`, () => {
      const { tools, warnings, errors } = from([definition])
      assert.deepEqual(errors, [])
      const [tool] = tools as [Tool]
      for (const [field, value] of Object.entries(expected)) assert.deepEqual(tool[field as keyof Tool], value, field)
      assert.deepEqual(
        warnings.map(({ tool: id, feature, from: was }) => `${id} ${feature} ${was}`),
        lost,
      )
    })
  }

  const refused: readonly (readonly [From, readonly unknown[], code: string, message: RegExp])[] = [
    [fromOpenAiTools, [{ type: 'web_search' }], 'not_a_function', /tools\[0\] is no function but web_search/],
    [fromOpenAiTools, [{ type: 'custom', custom: { name: 'a' } }], 'not_a_function', /custom/],
    [fromAnthropicTools, [{ type: 'bash_20250124', name: 'bash' }], 'not_a_function', /bash_20250124/],
    [fromBedrockTools, [{ cachePoint: { type: 'default' } }], 'not_a_function', /cachePoint/],
    [fromGeminiTools, [{ googleSearch: {} }], 'not_a_function', /googleSearch/],
    [fromAnthropicTools, [7], 'not_a_function', /number/],
    [fromAnthropicTools, [{ input_schema: SCHEMA }], 'tool_invalid', /the name must be a string/],
    [fromAnthropicTools, [{ name: 'a', input_schema: [] }], 'tool_invalid', /inputSchema must be an object/],
    [fromAnthropicTools, [{ name: 'b', input_schema: SCHEMA }], 'tool_duplicate', /two tools with the id "b"/],
  ]
  for (const [from, definitions, code, message] of refused) {
    it(`${from.name} reports ${code} for ${JSON.stringify(definitions)}, and the others still come`, () => {
      const good = from === fromAnthropicTools ? [{ name: 'b', input_schema: SCHEMA }] : []
      const { tools, errors } = from([...good, ...definitions] as object[])
      assert.deepEqual(
        tools.map(({ id }) => id),
        good.map(({ name }) => name),
      )
      assert.equal(errors.length, 1)
      assert.equal(errors[0]?.code, code)
      assert.match(errors[0]?.message.replace(`tools[${good.length}]`, 'tools[0]') ?? '', message)
    })
  }

  it('return tools that a gate decides and runs', async () => {
    const { tools } = fromOpenAiTools([{ type: 'function', name: 'search', parameters: SCHEMA }], {
      execute: { search: ({ q }: { q: string }) => `found ${q}` },
      overlay: { search: { tags: ['read'] } },
    })
    const gate = createGate({ tools, policy: { allow: ['tag:read'] } })
    const outcome = await (await gate.view({})).call({ tool: 'search', input: { q: 'gates' } })
    assert.equal(outcome.text, 'found gates')
  })

  it('end for definitions that hold themselves, and take fields that JSON cannot say', () => {
    const schema: Record<string, unknown> = { type: 'OBJECT', properties: {} }
    Object.assign(schema['properties'] as object, { self: schema, again: schema })
    assert.equal(fromGeminiTools([{ name: 'x', parameters: schema }]).errors[0]?.code, 'tool_invalid')
    const space: Record<string, unknown> = { type: 'namespace', name: 'a', tools: [] }
    ;(space['tools'] as unknown[]).push(space)
    assert.equal(fromOpenAiTools([space]).errors[0]?.code, 'not_a_function')
    const odd: Record<string, unknown> = { name: 'b', input_schema: SCHEMA, big: 1n }
    odd['self'] = odd
    const { warnings } = fromAnthropicTools([odd])
    assert.deepEqual(
      warnings.map(({ feature, from }) => `${feature}: ${from}`),
      ['big: a value that is not JSON', 'self: a value that is not JSON'],
    )
  })

  const misused: readonly (readonly [ImportOptions, message: RegExp])[] = [
    [{ overlays: {} } as ImportOptions, /fromOpenAiTools\.overlays: unknown option; did you mean "overlay"/],
    [
      { overlay: { serach: {} } },
      /fromOpenAiTools\.overlay\.serach: no definition has this name; did you mean "search"/,
    ],
    [{ execute: { serach: () => 1 } }, /fromOpenAiTools\.execute\.serach: no definition has this name/],
    [{ overlay: { search: { tag: ['read'] } as object } }, /overlay\.search\.tag: unknown field; did you mean "tags"/],
  ]
  for (const [options, message] of misused) {
    it(`refuse the options ${JSON.stringify(options)}`, () => {
      const definitions = [{ type: 'function', name: 'search', parameters: SCHEMA }]
      assert.throws(
        () => fromOpenAiTools(definitions, options),
        (error) => {
          return error instanceof ConfigError && message.test(error.message)
        },
      )
    })
  }

  it('keep the strict of each tool on the way out again, unless an option says otherwise', async () => {
    const definitions = ['a', 'b'].map((name) => ({
      name,
      input_schema: SCHEMA,
      ...(name === 'a' && { strict: true }),
    }))
    const view = await createGate({ tools: fromAnthropicTools(definitions).tools }).view({})
    const strictOf = (options?: ExposeOptions) =>
      expose(view, 'anthropic', options).tools.map((tool) => 'strict' in tool && tool.strict)
    assert.deepEqual(strictOf(), [true, false])
    assert.deepEqual(strictOf({ strict: false }), [false, false])
    assert.deepEqual(strictOf({ strict: true }), [true, true])
    assert.deepEqual(
      expose(view, 'langchain').warnings.map(({ tool, feature }) => `${tool} ${feature}`),
      ['a strict'],
    )
  })
})

const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/)
const leaf: fc.Arbitrary<JsonSchema> = fc.constantFrom<JsonSchema>(
  { type: 'string', minLength: 1, maxLength: 9 },
  { type: 'integer', minimum: 0 },
  { type: ['number', 'null'] },
  { enum: ['a', 'b'] },
  { const: 'x' },
  { type: 'array', items: { type: 'string' }, maxItems: 3 },
  { type: 'array' },
  { anyOf: [{ type: 'string' }, { type: 'object', properties: { n: { type: 'number' } } }] },
  { type: 'boolean', description: 'Whether.' },
  { type: 'object', additionalProperties: { type: 'string' } },
  {},
)
const schemaArbitrary = fc
  .record({ properties: fc.dictionary(word, leaf, { maxKeys: 4 }), takesRequired: fc.boolean() })
  .map(({ properties, takesRequired }): JsonSchema => ({
    type: 'object',
    properties,
    ...(takesRequired && { required: Object.keys(properties).slice(0, 2) }),
  }))
const toolArbitrary = fc.record({
  name: word,
  namespace: fc.option(word, { nil: undefined }),
  description: fc.constantFrom('', 'Does it.'),
  inputSchema: schemaArbitrary,
  outputSchema: fc.option(schemaArbitrary, { nil: undefined }),
})

describe('tools that are exposed and read again', () => {
  for (const [target, from, options] of FROM) {
    const { strict: _, ...again } = options
    it(`is the same for ${target} ${JSON.stringify(options)}`, async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(toolArbitrary, { selector: ({ namespace, name }) => `${namespace}:${name}`, maxLength: 4 }),
          async (definitions) => {
            const view = await createGate({ tools: definitions.map((one) => defineTool(one)) }).view({})
            const first = expose(view, target, options)
            const read = from(first.tools as readonly object[])
            assert.deepEqual([read.errors, read.warnings], [[], []])
            const second = expose(await createGate({ tools: read.tools }).view({}), target, again)
            assert.deepEqual(second.tools, first.tools)
            assert.deepEqual(
              read.tools.map(({ id }) => id),
              first.errors.length === 0 ? view.ids : view.ids.filter((id) => first.names.toName(id) !== undefined),
            )
          },
        ),
        RUNS,
      )
    })
  }

  it('have their earlier ids, if the exposure maps them', async () => {
    const odd = ['a__b', '_a_', 'ünï', 'x'.repeat(100), 'group__a', '9', '9__a']
    const tools = odd.flatMap((name) => [defineTool({ name }), defineTool({ name, namespace: 'my.ns' })])
    const view = await createGate({ tools }).view({})
    for (const target of ['openai-responses', 'gemini'] as const) {
      const exposure = expose(view, target)
      const from = target === 'gemini' ? fromGeminiTools : fromOpenAiTools
      const read = from(exposure.tools, { toId: exposure.names.toId })
      assert.deepEqual(
        read.tools.map(({ id }) => id),
        view.ids,
      )
    }
  })
})
