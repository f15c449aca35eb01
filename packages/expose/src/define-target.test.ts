import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError, createGate, defineTool } from '@toolgate/core'
import { type CustomTarget, defineTarget, type TargetDefinition } from './define-target.ts'
import { expose } from './expose.ts'

const tools = [
  defineTool({
    namespace: 'web',
    name: 'search',
    title: 'Search',
    description: 'Searches.',
    inputSchema: {
      type: 'object',
      properties: { q: { $ref: '#/$defs/q' } },
      $defs: { q: { type: 'string', minLength: 1 } },
    },
    outputSchema: { type: 'array', items: { type: 'string' } },
  }),
  defineTool({ name: 'now' }),
]
const view = await createGate({ tools }).view({})

const definition = {
  name: 'cohere',
  schema: { keywords: ['type', 'properties', 'required', 'description'], refs: 'inlined' },
  shape: ({ name, description = '', input }) => ({ name, description, parameters: input }),
} satisfies TargetDefinition<object>

describe('defineTarget', () => {
  it('writes tools in the shape of the host, with the schema that it takes', () => {
    const exposure = expose(view, defineTarget(definition))
    assert.equal(exposure.target, 'cohere')
    assert.deepEqual(exposure.tools, [
      { name: 'now', description: '', parameters: { type: 'object' } },
      {
        name: 'web__search',
        description: 'Searches.',
        parameters: { type: 'object', properties: { q: { type: 'string', description: '{minLength: 1}' } } },
      },
    ])
    assert.deepEqual(exposure.request, { tools: exposure.tools })
    assert.equal(exposure.names.toId('web__search'), 'web:search')
    assert.ok(Object.isFrozen(exposure.tools[0]))
  })

  it('warns of lost features, as the built-in targets do', () => {
    const { warnings } = expose(view, defineTarget(definition))
    assert.deepEqual(
      warnings.map(({ tool, feature, action }) => `${tool} ${feature} ${action}`),
      [
        'web:search outputSchema removed',
        'web:search title removed',
        'web:search $ref rewritten',
        'web:search minLength described',
      ],
    )
  })

  it('keeps the fields of the target, and masks if its request can', () => {
    const target = defineTarget({
      name: 'own',
      outputSchema: {},
      keeps: ['title'],
      canMask: true,
      shape: ({ name, title, output }) => ({ name, title, output }),
      request: (all, mask) => ({ functions: all, only: mask }),
    })
    const { request, warnings } = expose(view, target, { mode: 'mask', step: view.narrow({ activeTools: ['now'] }) })
    assert.deepEqual(request, {
      functions: [
        { name: 'now', title: undefined, output: undefined },
        { name: 'web__search', title: 'Search', output: { type: 'array', items: { type: 'string' } } },
      ],
      only: ['now'],
    })
    assert.deepEqual(warnings, [])
  })

  it('does not mix up two targets of one name', () => {
    const other = defineTarget({ name: 'cohere', shape: ({ name }) => ({ only: name }) })
    assert.notDeepEqual(expose(view, defineTarget(definition)).tools, expose(view, other).tools)
    assert.equal(expose(view, other), expose(view, other))
  })

  const refused: readonly (readonly [given: object, message: RegExp])[] = [
    [{ ...definition, keywords: [] }, /defineTarget\.keywords: unknown option/],
    [
      { ...definition, schema: { keyword: [] } },
      /defineTarget\.schema\.keyword: unknown option; did you mean "keywords"/,
    ],
    [{ ...definition, name: 'openai-chat' }, /"openai-chat" is a built-in target/],
    [{ ...definition, name: '' }, /defineTarget\.name: must be a string that is not empty/],
    [{ ...definition, shape: undefined }, /defineTarget\.shape: must be a function/],
    [{ ...definition, keeps: ['tags'] }, /"tags" is not one of title/],
    [{ ...definition, schema: { refs: 'inline' } }, /defineTarget\.schema\.refs: must be one of kept, inlined/],
    [{ ...definition, schema: { keywords: 'type' } }, /defineTarget\.schema\.keywords: must be a list of texts/],
    [{ ...definition, strictSchema: { closed: 'false' } }, /strictSchema\.closed: must be one of true, false/],
    [{ ...definition, schema: { parameterName: 'abc' } }, /parameterName: must be a regular expression/],
    [{ ...definition, maxTools: Number.NaN }, /defineTarget\.maxTools: must be a whole number above 0/],
    [{ ...definition, keeps: 'title' }, /defineTarget\.keeps: must be a list of texts/],
    [{ ...definition, request: 'x' }, /defineTarget\.request: must be a function/],
    [{ ...definition, canMask: true }, /defineTarget\.canMask: needs a request/],
  ]
  for (const [given, message] of refused) {
    it(`refuses ${message.source}`, () => {
      assert.throws(
        () => defineTarget(given as TargetDefinition<object>),
        (error) => error instanceof ConfigError && message.test(error.message),
      )
    })
  }

  it('is needed for every target that is an object', () => {
    assert.throws(() => expose(view, { name: 'cohere' } as CustomTarget), /target: was not made by defineTarget/)
  })
})
