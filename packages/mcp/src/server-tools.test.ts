import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError, createGate, type Policy, type Tool } from '@toolgate/core'
import { definitionHash } from '@toolgate/core/pins'
import { type ServerOverlay, ServerTools } from './server-tools.ts'

const LISTED = { name: 'read_file', inputSchema: { type: 'object' } }

function read(
  overlays: Readonly<Record<string, ServerOverlay>>,
  listed: object = {},
  { trustHints = false } = {},
): ServerTools {
  const tools = new ServerTools({
    namespace: 'files',
    trustHints,
    overlays: Object.entries(overlays),
    executeOf: () => () => undefined,
  })
  tools.read([{ ...LISTED, ...listed }])
  return tools
}

function offered(
  overlays: Readonly<Record<string, ServerOverlay>>,
  listed: object = {},
  { trustHints = false } = {},
): Tool {
  const [tool] = read(overlays, listed, { trustHints }).tools
  return tool ?? assert.fail('it is left out')
}

async function sees(tool: Tool, policy: Policy): Promise<boolean> {
  return (await createGate({ tools: [tool], policy }).view({})).has(tool.id)
}

describe('ServerTools', () => {
  it("keeps the tool's own texts, in the namespace of its server", () => {
    const words = {
      title: 'Read',
      description: 'Reads a file.',
      inputSchema: { type: 'object', required: ['path'] },
      outputSchema: { type: 'object' },
      icons: [{ src: 'https://example.com/i.png' }],
      _meta: { 'io.modelcontextprotocol/ui': { resourceUri: 'ui://chart' } },
    }
    const tool = offered({}, words)
    assert.equal(tool.id, 'files:read_file')
    const { title, description, inputSchema, outputSchema, icons, _meta } = tool
    assert.deepEqual({ title, description, inputSchema, outputSchema, icons, _meta }, words)
    assert.deepEqual(tool.tags, [])
  })

  it('takes labels, trust and addressees of the operator only', () => {
    const own = offered({}, { labels: [], trusted: true, addressees: ['to'] })
    assert.deepEqual([own.labels, own.trusted, own.addressees], [[], false, []])
    const { labels, trusted, addressees } = offered({
      '*': { labels: ['private'], addressees: ['to'] },
      'read_*': { trusted: true, addressees: ['cc'] },
    })
    assert.deepEqual([labels, trusted, addressees], [['private'], true, ['cc', 'to']])
  })

  it('keeps every other field of a definition, and unknown annotations under those of the operator', () => {
    const fields = { execution: { taskSupport: 'optional' }, 'x-own': [{ deep: null }], tags: ['x'] }
    assert.deepEqual(offered({}, fields).fields, fields)
    assert.equal(offered({}).fields, undefined)
    const annotations = { 'x-audience': ['people'], title: 'T', readOnlyHint: true }
    assert.deepEqual(offered({}, { annotations }).annotations, annotations)
    assert.deepEqual(offered({ '*': { annotations: { openWorldHint: false } } }, { annotations }).annotations, {
      'x-audience': ['people'],
      title: 'T',
      openWorldHint: false,
    })
  })

  it('leaves out a tool whose unknown fields are too large', () => {
    assert.deepEqual(read({}, { 'x-own': 'a'.repeat(64 * 1024 - 12) }).leftOut, [])
    const [left] = read({}, { 'x-own': 'a'.repeat(64 * 1024 - 11) }).leftOut
    assert.match(left?.error.message ?? '', /has unknown fields of more than 65536 characters/)
  })

  it('shows the operator’s title and description, and keeps the server’s own for pins', () => {
    const listed = { title: 'Read', description: 'Reads a file.' }
    const tool = offered({ '*': { title: 'All' }, read_file: { title: 'Open', description: 'Opens a file.' } }, listed)
    assert.deepEqual([tool.title, tool.description, tool.name], ['Open', 'Opens a file.', 'read_file'])
    assert.deepEqual(tool.original, { ...listed, annotations: {} })
    assert.notEqual(definitionHash(tool), definitionHash(offered({}, listed)))
    assert.equal(offered({ '*': { tags: ['x'] } }, listed).original, undefined)
  })

  it('does not offer a tool that the operator has switched off; the last overlay that says so counts', () => {
    const off = read({ '*': { enabled: false } })
    assert.deepEqual([off.tools, off.leftOut, off.unmatched], [[], [], []])
    assert.equal(read({ '*': { enabled: false }, read_file: { enabled: true } }).tools.length, 1)
    assert.equal(read({ '*': { enabled: true }, 'read_*': { enabled: false } }).tools.length, 0)
  })

  it('treats optional members that are null as absent, as many SDKs write them', () => {
    const inner = { type: 'object', properties: null, required: null, description: null }
    const nulls = { title: null, description: null, outputSchema: null, icons: null, _meta: null, execution: null }
    const tool = offered({}, { ...nulls, inputSchema: inner, annotations: { title: null, readOnlyHint: null } })
    assert.equal(definitionHash(tool), definitionHash(offered({}, { inputSchema: { type: 'object' } })))
    assert.deepEqual([tool.annotations, tool.fields], [{}, undefined])
    assert.deepEqual(offered({}, { annotations: null, inputSchema: { type: 'object' } }).inputSchema, {
      type: 'object',
    })
  })

  it('keeps a null that is data', () => {
    const inputSchema = { type: 'object', properties: { a: { default: null, enum: [1, null], const: null } } }
    const tool = offered({}, { inputSchema, _meta: { a: null }, 'x-own': { a: null } })
    assert.deepEqual([tool.inputSchema, tool._meta, tool.fields], [inputSchema, { a: null }, { 'x-own': { a: null } }])
  })

  it('refuses a member of the wrong type, and a required one that is null', () => {
    for (const [listed, text] of [
      [{ title: 5 }, /title must be a string/],
      [{ outputSchema: 'object' }, /outputSchema must be an object/],
      [{ inputSchema: { properties: { a: null } } }, /must be a schema/],
    ] as const)
      assert.match(read({}, listed).leftOut[0]?.error.message ?? '', text)
    assert.equal(read({}, { name: null }).tools.length, 0)
  })

  it('offers a tool without an output schema that no client can read, and says so', () => {
    for (const [broken, text] of [
      [{ $ref: '#/$defs/gone' }, /outputSchema\/\$ref is "#\/\$defs\/gone", which is not in this schema/],
      [{ type: 'text' }, /outputSchema\/type must be one of/],
      [{ description: 'x'.repeat(65_536) }, /outputSchema has .* bytes/],
      [
        { properties: { a: { pattern: '(' } } },
        /outputSchema\/properties\/a\/pattern is invalid: .*Unterminated group/,
      ],
      [{ patternProperties: { '[': {} } }, /outputSchema\/patternProperties is invalid/],
    ] as const) {
      const { tools, leftOut } = read({}, { outputSchema: broken })
      assert.deepEqual([tools.length, tools[0]?.outputSchema, leftOut[0]?.part], [1, undefined, 'outputSchema'])
      assert.match(leftOut[0]?.error.message ?? '', text)
    }
    const both = read({}, { inputSchema: { $ref: '#/no' }, outputSchema: { $ref: '#/gone' } })
    assert.deepEqual([both.tools.length, both.leftOut[0]?.part], [0, undefined])
    const data = { default: { pattern: '(' }, properties: { pattern: { type: 'string' } } }
    assert.deepEqual(read({}, { outputSchema: data }).leftOut, [])
  })

  it('adds up all overlays that match the tool, by name or by glob', () => {
    const tool = offered({
      '*': { tags: ['all'], category: 'general' },
      'read_*': { tags: ['read', 'all'], requiredScopes: ['files'] },
      read_file: { tags: ['one'], category: 'storage', requiredScopes: ['disk'] },
      'write_*': { tags: ['write'], requiredScopes: ['never'] },
    })
    assert.deepEqual(tool.tags, ['all', 'one', 'read'])
    assert.deepEqual(tool.requiredScopes, ['disk', 'files'])
    assert.equal(tool.category, 'storage')
  })

  it('takes the category of the last overlay that has one', () => {
    assert.equal(offered({ '*_file': { category: 'a' }, 'read_*': { category: 'b' }, '*': {} }).category, 'b')
  })

  it('matches special characters literally, and distinguishes upper case', () => {
    assert.deepEqual(offered({ 'read.file': { tags: ['x'] }, 'READ_*': { tags: ['y'] } }).tags, [])
    assert.deepEqual(offered({ 'a.b': { tags: ['x'] } }, { name: 'a.b' }).tags, ['x'])
  })

  it('takes no tag or scope from the upstream', () => {
    const tool = offered({}, { tags: ['reviewed'], requiredScopes: ['x'], category: 'safe', namespace: 'other' })
    assert.deepEqual([tool.tags, tool.requiredScopes, tool.category, tool.namespace], [[], [], undefined, 'files'])
  })

  describe('hints', () => {
    const allowed: Policy = { allow: ['hint:read-only'] }
    const harmless: Policy = { deny: ['hint:destructive'] }
    const claimed = { annotations: { readOnlyHint: true } }

    it('of the upstream grant nothing, since they are only its claim', async () => {
      const tool = offered({}, claimed)
      assert.equal(tool.hintsTrusted, false)
      assert.equal(await sees(tool, allowed), false)
      assert.equal(await sees(tool, harmless), false)
    })

    it('of a trusted upstream apply', async () => {
      const tool = offered({}, claimed, { trustHints: true })
      assert.equal(await sees(tool, allowed), true)
      assert.equal(await sees(tool, harmless), true)
    })

    it('of the operator apply, and take precedence over those of the upstream', async () => {
      const tool = offered(
        { read_file: { annotations: { readOnlyHint: true } } },
        { annotations: { readOnlyHint: false } },
      )
      assert.equal(await sees(tool, allowed), true)
      const strict = offered({ read_file: { annotations: { readOnlyHint: false } } }, claimed, { trustHints: true })
      assert.equal(await sees(strict, allowed), false)
    })

    it('of several overlays are merged, and later ones take precedence', () => {
      const tool = offered({
        '*': { annotations: { readOnlyHint: true, idempotentHint: true } },
        read_file: { annotations: { readOnlyHint: false } },
      })
      assert.deepEqual(tool.annotations, { readOnlyHint: false, idempotentHint: true })
    })

    it('of the operator do not make the upstream’s hints for the same tool trusted', async () => {
      const tool = offered({ read_file: { annotations: { idempotentHint: true } } }, claimed)
      assert.equal(await sees(tool, allowed), false)
    })

    it('are not trusted because of an overlay with only tags', async () => {
      assert.equal(await sees(offered({ read_file: { tags: ['read'] } }, claimed), allowed), false)
    })
  })

  it('rejects a tool that no selector could name', () => {
    for (const name of ['', 'a\tb', 'a\u200Bb', 'a\uD800', 'x'.repeat(129)])
      assert.deepEqual(
        read({}, { name }).leftOut.map(({ error }) => error instanceof ConfigError),
        [true],
        name,
      )
  })
})
