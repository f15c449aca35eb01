import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import type { StandardSchema } from './standard-schema.ts'
import { defineTool, isTool, titleOf, type ToolDefinition } from './tool.ts'

describe('defineTool', () => {
  it('leaves nothing to default', () => {
    const { execute, ...rest } = defineTool({ name: 'search' })
    assert.equal(execute, undefined)
    assert.deepEqual(rest, {
      id: 'search',
      namespace: undefined,
      name: 'search',
      title: undefined,
      description: '',
      inputSchema: { type: 'object' },
      outputSchema: undefined,
      tags: [],
      category: undefined,
      requiredScopes: [],
      annotations: {},
      kind: 'tool',
      uri: undefined,
      mimeType: undefined,
      size: undefined,
      arguments: undefined,
      icons: undefined,
      inputs: undefined,
      _meta: undefined,
      fields: undefined,
      original: undefined,
      strict: undefined,
      hintsTrusted: true,
      groups: [],
      labels: [],
      trusted: false,
      addressees: [],
      deadlineMs: undefined,
      parseInput: undefined,
    })
  })

  it('keeps icons and _meta as they were given, and nobody can change them', () => {
    const icons = [{ src: 'https://example.com/i.png', sizes: ['48x48'], 'x-own': 1 }]
    const _meta = { 'io.modelcontextprotocol/ui': { resourceUri: 'ui://chart' } }
    const tool = defineTool({ name: 'chart', icons, _meta })
    assert.deepEqual([tool.icons, tool._meta], [icons, _meta])
    icons[0]!.src = 'https://example.org/other.png'
    assert.equal(tool.icons?.[0]?.src, 'https://example.com/i.png')
    assert.throws(() => Object.assign(tool._meta ?? {}, { more: 1 }), TypeError)
  })

  it('keeps further fields of a definition, and rejects names of known fields among them', () => {
    const fields = { execution: { taskSupport: 'optional' }, 'x-own': [1, { deep: null }] }
    assert.deepEqual(defineTool({ name: 'a', fields }).fields, fields)
    for (const field of [
      'name',
      'title',
      'description',
      'inputSchema',
      'outputSchema',
      'annotations',
      'icons',
      '_meta',
    ])
      assert.throws(
        () => defineTool({ name: 'a', fields: { [field]: {} } }),
        /tool "a": fields must be an object without the names of known fields/,
      )
  })

  it('sorts tags and scopes and keeps one of each', () => {
    const tool = defineTool({ name: 'search', tags: ['b', 'a', 'b'], requiredScopes: ['y', 'x', 'x'] })
    assert.deepEqual(
      [tool.tags, tool.requiredScopes],
      [
        ['a', 'b'],
        ['x', 'y'],
      ],
    )
  })

  it('has the title of its annotations where there is no other', () => {
    const title = { title: 'A' }
    assert.equal(defineTool({ name: 'a', annotations: title }).title, undefined)
    assert.equal(titleOf(defineTool({ name: 'a', annotations: title })), 'A')
    assert.equal(titleOf(defineTool({ name: 'a', title: 'B', annotations: title })), 'B')
  })

  it('gives a tool that nobody can change, the author’s own objects included', () => {
    const inputSchema = { type: 'object', properties: { q: { type: 'string' } } }
    const tool = defineTool({ name: 'search', inputSchema, annotations: { readOnlyHint: true } })
    inputSchema.properties.q.type = 'number'
    assert.deepEqual(tool.inputSchema, { type: 'object', properties: { q: { type: 'string' } } })
    const { properties } = tool.inputSchema as typeof inputSchema
    assert.throws(() => Object.assign(properties.q, { type: 'number' }), TypeError)
    assert.throws(() => Object.assign(tool, { name: 'other' }), TypeError)
    assert.throws(() => Object.assign(tool.annotations, { readOnlyHint: false }), TypeError)
  })

  it('leaves out fields of a schema that are undefined', () => {
    assert.deepEqual(defineTool({ name: 'a', inputSchema: { type: 'object', title: undefined } }).inputSchema, {
      type: 'object',
    })
  })

  const refused: readonly (readonly [what: string, definition: object, problem: RegExp])[] = [
    ['a name', { name: 'a b' }, /tool "a b": the name must not hold spaces/],
    ['a namespace', { name: 'a', namespace: 'tag' }, /namespace "tag"/],
    ['a schema that is no object', { name: 'a', inputSchema: true }, /tool "a": inputSchema must be an object/],
    ['a schema that is a list', { name: 'a', outputSchema: [] }, /outputSchema must be an object/],
    ['a schema with a function', { name: 'a', inputSchema: { f: () => 1 } }, /inputSchema\/f is of type function/],
    [
      'a schema that JSON cannot say',
      { name: 'a', inputSchema: { max: Infinity } },
      /inputSchema\/max is not a number/,
    ],
    ['a schema with a lone surrogate', { name: 'a', inputSchema: { description: '\ud800' } }, /lone surrogate/],
    ['a schema that is too deep', { name: 'a', inputSchema: nested(64) }, /nested more than 64 levels/],
    ['a description that is no text', { name: 'a', description: 7 }, /description must be a string/],
    ['a description with a lone surrogate', { name: 'a', description: '\udfff' }, /description holds a lone surrogate/],
    ['icons that are no list', { name: 'a', icons: { src: 'x' } }, /icons must be a list of icons/],
    ['an icon without src', { name: 'a', icons: [{ url: 'x' }] }, /icons must be a list of icons, each with its src/],
    ['strict that is a text', { name: 'a', strict: 'yes' }, /strict must be true or false/],
    ['_meta that is a list', { name: 'a', _meta: [] }, /_meta must be an object/],
    ['tags that are one text', { name: 'a', tags: 'read' }, /tags must be a list of strings/],
    ['scopes that are not texts', { name: 'a', requiredScopes: [1] }, /requiredScopes must be a list of strings/],
    ['an execute that is no function', { name: 'a', execute: 'rm' }, /execute must be a function/],
  ]
  for (const [what, definition, problem] of refused) {
    it(`refuses ${what}, and says so`, () => {
      const code = what.startsWith('a schema') ? 'schema_invalid' : 'tool_invalid'
      assert.throws(() => defineTool(definition as ToolDefinition), { code, message: problem })
    })
  }
})

describe('deadlineMs of a tool', () => {
  const slow = (deadlineMs?: number) =>
    defineTool({ name: 'slow', deadlineMs, execute: () => new Promise((resolve) => setTimeout(resolve, 50)) })

  it('ends its executions in place of the gate’s, and the call’s own comes before it', async () => {
    const statusOf = async (tool: number | undefined, gate: number, call?: number) => {
      const view = await createGate({ tools: [slow(tool)], deadlineMs: gate }).view({})
      return (await view.call({ tool: 'slow', deadlineMs: call })).status
    }
    assert.deepEqual(
      [
        await statusOf(undefined, 1),
        await statusOf(Infinity, 1),
        await statusOf(1, 60_000),
        await statusOf(1, 1, 60_000),
      ],
      ['failed', 'done', 'failed', 'done'],
    )
  })

  it('is a number above 0, and no part of the tool', () => {
    assert.deepEqual([slow(5).deadlineMs, slow().deadlineMs], [5, undefined])
    for (const wrong of [0, -1, Number.NaN, '5' as unknown as number])
      assert.throws(() => slow(wrong), /deadlineMs must be a number of milliseconds above 0/)
  })
})

describe('a copy of a tool', () => {
  const schema: StandardSchema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) => ({ value }),
      jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
    },
  }

  it('keeps the groups, the deadline and the validation of its schema', () => {
    const tool = defineTool({ name: 'search', groups: ['web'], deadlineMs: 5, inputSchema: schema })
    const copy = defineTool({ ...tool, tags: ['read'] })
    assert.deepEqual([copy.groups, copy.deadlineMs, copy.tags], [['web'], 5, ['read']])
    assert.ok(copy.parseInput)
    assert.equal(copy.parseInput, tool.parseInput)
    assert.equal(defineTool({ ...copy }).parseInput, tool.parseInput)
    assert.equal(defineTool({ ...tool }).parseInput, tool.parseInput)
  })

  it('with another schema is not validated by the first', () => {
    const tool = defineTool({ name: 'search', inputSchema: schema })
    assert.equal(defineTool({ ...tool, inputSchema: { type: 'object' } }).parseInput, undefined)
  })
})

describe('isTool', () => {
  it('knows what defineTool made from what only looks like it', () => {
    const tool = defineTool({ name: 'search' })
    assert.equal(isTool(tool), true)
    assert.equal(isTool({ ...tool }), false)
    assert.equal(isTool(null), false)
  })
})

function nested(levels: number): object {
  return levels === 0 ? {} : { properties: nested(levels - 1) }
}
