import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ConfigError, createGate, defineTool, type Tool, type ToolDefinition, type View } from '@toolgate/core'
import { expose } from './expose.ts'
import { EXPOSE_TARGETS, type ExposeOptions, type ExposeTarget } from './options.ts'

const viewOf = (...definitions: readonly ToolDefinition[]): Promise<View> =>
  createGate({ tools: definitions.map((definition) => defineTool(definition)) }).view({ user: 'vera' })

const READ: ToolDefinition = {
  namespace: 'files',
  name: 'read',
  title: 'Read',
  description: 'Reads a file.',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  outputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  annotations: { idempotentHint: true, readOnlyHint: true },
  icons: [{ src: 'https://example.com/i.png', mimeType: 'image/png' }],
  _meta: { 'example.com/own': 1 },
}
const ICONS = [{ mimeType: 'image/png', src: 'https://example.com/i.png' }]
const META = { 'example.com/own': 1 }
const INPUT = READ.inputSchema
const OUTPUT = READ.outputSchema
const lost = (...features: readonly string[]) => features.map((feature) => `files:read  ${feature} removed`)

/** The same tool for each target, and what is lost of it. */
const ROWS: readonly (readonly [ExposeTarget, ExposeOptions, tools: unknown, warnings: readonly string[]])[] = [
  [
    'openai-chat',
    {},
    [{ type: 'function', function: { name: 'files__read', description: 'Reads a file.', parameters: INPUT } }],
    lost('_meta', 'annotations', 'icons', 'outputSchema', 'title'),
  ],
  [
    'openai-chat',
    { strict: true },
    [
      {
        type: 'function',
        function: {
          name: 'files__read',
          description: 'Reads a file.',
          parameters: { ...INPUT, additionalProperties: false },
          strict: true,
        },
      },
    ],
    lost('_meta', 'annotations', 'icons', 'outputSchema', 'title'),
  ],
  [
    'openai-responses',
    {},
    [
      {
        type: 'function',
        name: 'files__read',
        description: 'Reads a file.',
        parameters: INPUT,
        strict: false,
        output_schema: OUTPUT,
      },
    ],
    lost('_meta', 'annotations', 'icons', 'title'),
  ],
  [
    'anthropic',
    {},
    [{ name: 'files__read', description: 'Reads a file.', input_schema: INPUT }],
    lost('_meta', 'annotations', 'icons', 'outputSchema', 'title'),
  ],
  [
    'gemini',
    {},
    [
      {
        functionDeclarations: [
          {
            name: 'files__read',
            description: 'Reads a file.',
            parametersJsonSchema: INPUT,
            responseJsonSchema: OUTPUT,
          },
        ],
      },
    ],
    lost('_meta', 'annotations', 'icons', 'title'),
  ],
  [
    'gemini',
    { schemas: 'openapi' },
    [
      {
        functionDeclarations: [
          {
            name: 'files__read',
            description: 'Reads a file.',
            parameters: { type: 'OBJECT', properties: { path: { type: 'STRING' } }, required: ['path'] },
            response: { type: 'OBJECT', properties: { text: { type: 'STRING' } } },
          },
        ],
      },
    ],
    lost('_meta', 'annotations', 'icons', 'title'),
  ],
  [
    'bedrock',
    {},
    [{ toolSpec: { name: 'files__read', description: 'Reads a file.', inputSchema: { json: INPUT } } }],
    lost('_meta', 'annotations', 'icons', 'outputSchema', 'title'),
  ],
  [
    'mcp',
    {},
    [
      {
        name: 'files__read',
        title: 'Read',
        description: 'Reads a file.',
        inputSchema: INPUT,
        outputSchema: OUTPUT,
        annotations: { idempotentHint: true, readOnlyHint: true },
        icons: ICONS,
        _meta: META,
      },
    ],
    [],
  ],
  [
    'langchain',
    {},
    [
      {
        name: 'files__read',
        description: 'Reads a file.',
        schema: INPUT,
        metadata: {
          title: 'Read',
          annotations: { idempotentHint: true, readOnlyHint: true },
          outputSchema: OUTPUT,
          icons: ICONS,
          _meta: META,
        },
      },
    ],
    [],
  ],
  [
    'ai-sdk',
    {},
    {
      files__read: {
        description: 'Reads a file.',
        inputSchema: { jsonSchema: INPUT },
        outputSchema: { jsonSchema: OUTPUT },
        metadata: {
          title: 'Read',
          annotations: { idempotentHint: true, readOnlyHint: true },
          icons: ICONS,
          _meta: META,
        },
      },
    },
    [],
  ],
]
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

describe('expose', () => {
  for (const [target, options, tools, warnings] of ROWS) {
    it(`gives a tool for ${target} ${JSON.stringify(options)}`, async () => {
      const exposure = expose(await viewOf(READ), target, options)
      assert.deepEqual(plain(exposure.tools), tools)
      assert.deepEqual(
        exposure.warnings.map(({ tool, path, feature, action }) => `${tool} ${path} ${feature} ${action}`),
        warnings,
      )
      assert.deepEqual(exposure.errors, [])
    })
  }

  for (const target of EXPOSE_TARGETS) {
    it(`gives ${target} nothing of a view that shows nothing`, async () => {
      const { tools, errors, bytes } = expose(await viewOf(), target)
      assert.equal(Object.keys(tools).length, 0)
      assert.deepEqual([errors, bytes], [[], 2])
    })
  }

  it('leaves an empty list out of the request where that would be an error', async () => {
    const view = await viewOf()
    for (const target of ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'bedrock'] as const)
      assert.deepEqual(expose(view, target).request, {})
  })

  it('refuses a target that does not exist', async () => {
    const view = await viewOf()
    assert.throws(
      () => expose(view, 'constructor' as ExposeTarget),
      (error) => error instanceof ConfigError && error.message.includes('"constructor" is none of openai-chat'),
    )
  })

  it('returns the same object for the same view, target and options', async () => {
    const [view, equal] = [await viewOf(READ), await viewOf(READ)]
    assert.equal(expose(view, 'mcp'), expose(equal, 'mcp', {}))
    assert.notEqual(expose(view, 'mcp'), expose(view, 'bedrock'))
    assert.notEqual(expose(view, 'openai-chat'), expose(view, 'openai-chat', { strict: true }))
  })

  it('returns frozen values', async () => {
    const { tools } = expose(await viewOf(READ), 'anthropic')
    assert.throws(
      () => tools.push({ type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' }),
      TypeError,
    )
    const [tool] = tools as unknown as [{ input_schema: { properties: { path: { type: string } } } }]
    assert.throws(() => (tool.input_schema.properties.path.type = 'number'), TypeError)
  })

  it('returns a new copy of Gemini’s OpenAPI form each time, since its SDK changes it', async () => {
    const view = await viewOf(READ)
    const [a, b] = [1, 2].map(() => expose(view, 'gemini', { schemas: 'openapi' }).tools)
    assert.deepEqual(a, b)
    assert.notEqual(a?.[0]?.functionDeclarations[0], b?.[0]?.functionDeclarations[0])
  })

  it('returns equal bytes for equal definitions, for every order of their keys and of the tools', async () => {
    const turned: ToolDefinition = {
      ...READ,
      inputSchema: { required: ['path'], properties: { path: { type: 'string' } }, type: 'object' },
      annotations: { readOnlyHint: true, idempotentHint: true },
    }
    const [a, b] = [await viewOf(READ, { name: 'a' }), await viewOf({ name: 'a' }, turned)]
    for (const target of EXPOSE_TARGETS)
      assert.equal(
        JSON.stringify(expose(a, target, { search: 'regex' })),
        JSON.stringify(expose(b, target, { search: 'bm25' })),
      )
  })
})

describe('expose: names', () => {
  it('lead back to the ids of exposed tools, and to no others', async () => {
    const { names } = expose(await viewOf(READ, { name: 'a.b' }), 'mcp')
    assert.equal(names.toName('files:read'), 'files__read')
    assert.equal(names.toId('files__read'), 'files:read')
    assert.equal(names.toId(names.toName('a.b') ?? ''), 'a.b')
    for (const name of ['constructor', '__proto__', 'files:read', '']) assert.equal(names.toId(name), undefined)
  })

  it('begin with a letter or _ for Gemini', async () => {
    const { names } = expose(await viewOf({ name: '1st' }, { name: '-'.repeat(64) }), 'gemini')
    assert.equal(names.toName('1st'), '_1st')
    assert.match(names.toName('-'.repeat(64)) ?? '', /^_-{50}__[0-9a-f]{10}_$/)
    assert.equal(names.toId('_1st'), '1st')
  })

  it('are at most 64 of [A-Za-z0-9_-] and lead back, for every tool and target', async () => {
    const part = fc.oneof(
      fc.string({ unit: fc.constantFrom('a', '1', '_', '-', 'é', '読', '.'), minLength: 1, maxLength: 70 }),
      fc.constantFrom('constructor', '__proto__', 'tool_search_tool_bm25'),
    )
    const definition = fc.record({ name: part, namespace: fc.option(part, { nil: undefined }) })
    const definitions = fc.uniqueArray(definition, {
      maxLength: 5,
      selector: ({ name, namespace }) => `${namespace}:${name}`,
    })
    await fc.assert(
      fc.asyncProperty(definitions, fc.constantFrom(...EXPOSE_TARGETS), async (some, target) => {
        const view = await viewOf(...some)
        const { names, errors } = expose(view, target)
        const refused = new Set(errors.map(({ tool }) => tool))
        for (const id of view.ids) {
          const name = names.toName(id)
          if (refused.has(id)) assert.equal(name, undefined)
          else
            assert.match(name ?? '', target === 'gemini' ? /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/ : /^[A-Za-z0-9_-]{1,64}$/)
          if (name !== undefined) assert.equal(names.toId(name), id)
        }
      }),
    )
  })

  it('that are the provider’s own are errors', async () => {
    const { errors, names, tools } = expose(await viewOf({ name: 'tool_search_tool_bm25' }, READ), 'anthropic')
    assert.deepEqual(errors, [
      {
        tool: 'tool_search_tool_bm25',
        path: '',
        code: 'name_reserved',
        message: 'The tool "tool_search_tool_bm25" has the name tool_search_tool_bm25, which is the provider\'s own.',
      },
    ])
    assert.equal(tools.length, 1)
    assert.equal(names.toId('tool_search_tool_bm25'), undefined)
    assert.equal(names.toName('tool_search_tool_bm25'), undefined)
  })
})

describe('expose: tools that cannot be exposed', () => {
  it('is an error with its id, and the others still come', async () => {
    // As a source could make one that does not go through defineTool.
    const remote: Tool = {
      ...defineTool({ name: 'remote' }),
      inputSchema: { type: 'object', $ref: 'https://example.com/a.json' },
    }
    const view = await viewOf(READ)
    const odd = { ...view, tools: [...view.tools, remote], fingerprint: 'odd' } as View
    const { errors, tools } = expose(odd, 'bedrock')
    assert.deepEqual(errors, [
      {
        tool: 'remote',
        path: '/$ref',
        code: 'remote_ref',
        message: 'The tool "remote" refers to "https://example.com/a.json", which is not in the schema itself.',
      },
    ])
    assert.equal(tools.length, 1)
  })

  it('is a root that is no object', async () => {
    const { errors } = expose(await viewOf({ name: 'a', inputSchema: { type: 'string' } }), 'mcp')
    assert.deepEqual(
      errors.map(({ tool, code }) => [tool, code]),
      [['a', 'schema_unusable']],
    )
  })

  it('is a parameter with a name that is not allowed, if it is required; else it goes', async () => {
    const inputSchema = { type: 'object', properties: { 'a b': { type: 'string' } } }
    const view = await viewOf(
      { name: 'needs', inputSchema: { ...inputSchema, required: ['a b'] } },
      { name: 'takes', inputSchema },
    )
    const { errors, warnings, tools } = expose(view, 'anthropic')
    assert.deepEqual(
      errors.map(({ tool, path, code }) => [tool, path, code]),
      [['needs', '/properties/a b', 'parameter_name']],
    )
    assert.deepEqual(
      warnings.map(({ tool, path, feature }) => [tool, path, feature]),
      [['takes', '/properties/a b', 'parameter name']],
    )
    assert.deepEqual(plain(tools), [{ name: 'takes', input_schema: { type: 'object', properties: {} } }])
  })

  it('is a tool beyond the 128 of OpenAI’s Chat Completions', async () => {
    const many = Array.from({ length: 130 }, (_, i) => ({ name: `t${String(i).padStart(3, '0')}` }))
    const view = await viewOf(...many)
    const { tools, errors } = expose(view, 'openai-chat')
    assert.equal(tools.length, 128)
    assert.deepEqual(
      errors.map(({ tool, code }) => [tool, code]),
      [
        ['t128', 'too_many_tools'],
        ['t129', 'too_many_tools'],
      ],
    )
    assert.equal(expose(view, 'anthropic').tools.length, 130)
  })

  it('is cut of a description of more than 1,024 characters, for the same', async () => {
    const { tools, warnings } = expose(await viewOf({ name: 'a', description: '😀'.repeat(600) }), 'openai-chat')
    const description = tools[0]?.function.description ?? ''
    assert.ok(description.length <= 1024 && description.isWellFormed() && description.endsWith('…'))
    assert.deepEqual(
      warnings.map(({ feature, from }) => [feature, from]),
      [['description', '1200 characters']],
    )
  })

  it('is an output schema that cannot be written, without which the tool comes', async () => {
    const tool: Tool = { ...defineTool({ name: 'a' }), outputSchema: { $ref: 'https://example.com/a.json' } }
    const odd = { ...(await viewOf()), tools: [tool], fingerprint: 'odd output' } as View
    const { tools, warnings } = expose(odd, 'mcp')
    assert.deepEqual(tools, [{ name: 'a', inputSchema: { type: 'object' } }])
    assert.deepEqual(
      warnings.map(({ feature, action }) => [feature, action]),
      [['outputSchema', 'removed']],
    )
  })
})

describe('expose: strict', () => {
  const nested = (levels: number): Record<string, unknown> =>
    levels === 0 ? { type: 'string' } : { type: 'object', properties: { a: nested(levels - 1) }, required: ['a'] }

  it('is left for a tool that is beyond its limits, with a warning', async () => {
    const { tools, warnings } = expose(
      await viewOf({ name: 'deep', inputSchema: nested(11) }, { name: 'flat', inputSchema: nested(10) }),
      'openai-responses',
      { strict: true },
    )
    assert.deepEqual(
      tools.map((tool) => 'strict' in tool && tool.strict),
      [false, true],
    )
    assert.deepEqual(warnings, [
      { tool: 'deep', path: '', feature: 'strict', from: '11 levels of objects, at most 10', action: 'removed' },
    ])
  })

  it('is warned about where there is no such mode', async () => {
    const { warnings } = expose(await viewOf(), 'gemini', { strict: true })
    assert.deepEqual(warnings, [{ tool: '', path: '', feature: 'strict', from: 'true', action: 'removed' }])
  })

  it('makes the model write null for absent properties, which toInput removes', async () => {
    const inputSchema = {
      type: 'object',
      properties: {
        a: { type: 'string' },
        b: { type: ['string', 'null'] },
        list: { type: 'array', items: { $ref: '#/$defs/item' } },
        either: { anyOf: [{ type: 'object', properties: { d: { type: 'string' } } }, { type: 'string' }] },
      },
      $defs: { item: { type: 'object', properties: { c: { type: 'number' }, constructor: { enum: ['x', null] } } } },
    }
    const { toInput } = expose(await viewOf({ name: 'a', inputSchema }), 'openai-chat', { strict: true })
    const said = {
      a: null,
      b: null,
      list: [{ c: null, constructor: null }, { c: 1 }] as unknown[],
      either: { d: null },
    }
    assert.deepEqual(toInput('a', said), { b: null, list: [{ constructor: null }, { c: 1 }] as unknown[], either: {} })
    assert.deepEqual(toInput('a', { unknown: null }), { unknown: null })
    assert.deepEqual(toInput('other', said), said)
    for (const odd of [null, 5, 'x', [null]]) assert.deepEqual(toInput('a', odd), odd)
  })

  it('takes any input', async () => {
    const inputSchema = { type: 'object', properties: { a: { $ref: '#' }, b: { prefixItems: [{}, { $ref: '#' }] } } }
    const { toInput } = expose(await viewOf({ name: 'a', inputSchema }), 'openai-chat', { strict: true })
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.boolean(), (value, deep) => {
        const said = deep ? { a: { a: value, b: [null, value] } } : value
        const once = toInput('a', said)
        assert.deepEqual(toInput('a', once), once)
      }),
    )
  })

  it('changes no input without it', async () => {
    const { toInput } = expose(await viewOf(READ), 'openai-chat')
    const input = { path: null }
    assert.equal(toInput('files:read', input), input)
  })
})

describe('expose: modes', () => {
  const gate = createGate({ tools: [defineTool({ name: 'a' }), defineTool({ name: 'b' }), defineTool({ name: 'c' })] })
  const run = gate.view({ user: 'vera' })
  const stepOf = async (...activeTools: string[]) => (await run).narrow({ activeTools })
  const namesIn = (tools: unknown) => [...JSON.stringify(tools).matchAll(/"name":"([abc])"/g)].map(([, name]) => name)

  it('filter sends the tools that the step sees', async () => {
    const { tools, names } = expose(await run, 'anthropic', { step: await stepOf('b') })
    assert.deepEqual(namesIn(tools), ['b'])
    assert.equal(names.toId('a'), undefined)
  })

  const masks: readonly (readonly [ExposeTarget, ExposeOptions, some: unknown, none: unknown])[] = [
    [
      'openai-chat',
      {},
      {
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'b' } }] },
        },
      },
      { tool_choice: 'none' },
    ],
    [
      'openai-responses',
      {},
      { tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'b' }] } },
      { tool_choice: 'none' },
    ],
    [
      'gemini',
      {},
      { toolConfig: { functionCallingConfig: { mode: 'VALIDATED', allowedFunctionNames: ['b'] } } },
      { toolConfig: { functionCallingConfig: { mode: 'NONE' } } },
    ],
    [
      'ai-sdk',
      { provider: 'openai' },
      { providerOptions: { openai: { allowedTools: { toolNames: ['b'] } } } },
      { toolChoice: 'none' },
    ],
  ]
  for (const [target, options, some, none] of masks) {
    it(`mask sends ${target} one array for the run, and what the step may call`, async () => {
      const view = await run
      const [first, second] = [await stepOf('b'), await stepOf()].map((step) =>
        expose(view, target, { ...options, mode: 'mask', step }),
      )
      assert.equal(JSON.stringify(first?.tools), JSON.stringify(second?.tools))
      assert.equal(JSON.stringify(first?.tools), JSON.stringify(expose(view, target, options).tools))
      for (const [exposure, mask] of [
        [first, some],
        [second, none],
      ] as const) {
        const request = exposure?.request ?? {}
        const { tools: _, ...rest } = (request['config'] ?? request) as Record<string, unknown>
        assert.deepEqual(rest, mask)
        assert.equal(exposure?.mode, 'mask')
      }
    })
  }

  it('mask never shows tools that the run does not see', async () => {
    const tight = await stepOf('a')
    const { tools, request } = expose(tight, 'openai-chat', { mode: 'mask', step: await run })
    assert.deepEqual(namesIn(tools), ['a'])
    assert.doesNotMatch(JSON.stringify(request), /"b"/)
  })

  it('defer marks the definitions and adds the provider’s search', async () => {
    const view = await run
    const options: ExposeOptions = { mode: 'defer', loaded: ['a'] }
    assert.deepEqual(
      expose(view, 'anthropic', { ...options, search: 'regex' }).tools.map((tool) => [
        tool.name,
        'defer_loading' in tool,
      ]),
      [
        ['tool_search_tool_regex', false],
        ['a', false],
        ['b', true],
        ['c', true],
      ],
    )
    assert.deepEqual(
      expose(view, 'openai-responses', options).tools.map((tool) => [
        'name' in tool ? tool.name : tool.type,
        'defer_loading' in tool,
      ]),
      [
        ['tool_search', false],
        ['a', false],
        ['b', true],
        ['c', true],
      ],
    )
    assert.deepEqual(
      expose(view, 'langchain', options).tools.map(({ extras }) => extras?.defer_loading),
      [undefined, true, true],
    )
    assert.deepEqual(
      Object.values(expose(view, 'ai-sdk', options).tools).map(({ deferLoading }) => deferLoading),
      [undefined, true, true],
    )
  })

  const falls: readonly (readonly [ExposeTarget, 'mask' | 'defer'])[] = [
    ['anthropic', 'mask'],
    ['bedrock', 'mask'],
    ['mcp', 'mask'],
    ['langchain', 'mask'],
    ['ai-sdk', 'mask'],
    ['openai-chat', 'defer'],
    ['gemini', 'defer'],
    ['bedrock', 'defer'],
    ['mcp', 'defer'],
  ]
  for (const [target, mode] of falls) {
    it(`${mode} for ${target} filters, with a warning`, async () => {
      const exposure = expose(await run, target, { mode, step: await stepOf('b') })
      assert.equal(exposure.mode, 'filter')
      assert.deepEqual(exposure.names.toId('a'), undefined)
      assert.deepEqual(exposure.warnings, [
        { tool: '', path: '', feature: 'mode', from: mode, to: 'filter', action: 'rewritten' },
      ])
    })
  }
})

describe('expose: tokens', () => {
  it('are estimated from the bytes without a tokenizer', async () => {
    const { tokens, bytes, tools } = expose(await viewOf({ name: 'a', description: 'é' }), 'openai-chat')
    assert.equal(bytes, Buffer.byteLength(JSON.stringify(tools)))
    assert.deepEqual(tokens, { count: Math.ceil(bytes / 4), exact: false, tokenizer: '4 bytes a token' })
  })

  it('are counted by the tokenizer that is given, and exact for the models that use it', async () => {
    const tokenizer = { name: 'words', exactFor: ['mcp'] as const, count: (text: string) => text.split(' ').length }
    const view = await viewOf({ name: 'a', description: 'one two three' })
    assert.deepEqual(expose(view, 'mcp', { tokenizer }).tokens, { count: 3, exact: true, tokenizer: 'words' })
    assert.deepEqual(expose(view, 'bedrock', { tokenizer }).tokens.exact, false)
    const other = { ...tokenizer, name: 'none', count: () => 0 }
    assert.equal(expose(view, 'mcp', { tokenizer: other }).tokens.tokenizer, 'none')
  })
})
