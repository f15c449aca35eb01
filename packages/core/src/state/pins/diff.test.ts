import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { definitionOf } from '../../tools/definition-hash.ts'
import { defineTool, type ToolDefinition } from '../../tools/tool.ts'
import { diffDefinitions } from './diff.ts'

const base: ToolDefinition = {
  name: 'read',
  title: 'Read',
  description: 'Reads a file from the disk and gives its text.',
  inputSchema: {
    type: 'object',
    properties: { path: { type: 'string', description: 'Where it is.' }, mode: { enum: ['text', 'bytes'] } },
    required: ['path'],
  },
}
const diffOf = (changes: Partial<ToolDefinition>, from: Partial<ToolDefinition> = {}) =>
  diffDefinitions(definitionOf(defineTool({ ...base, ...from })), definitionOf(defineTool({ ...base, ...changes })))
const schemaWith = (schema: object) => ({ inputSchema: { ...(base.inputSchema as object), ...schema } })

describe('diffDefinitions', () => {
  const table: readonly (readonly [what: string, changes: Partial<ToolDefinition>, text: string])[] = [
    ['nothing', {}, ''],
    [
      'words that were added',
      { description: 'Reads a file from the disk, sends it to me and gives its text.' },
      '~ /description: … file from the disk{+, sends it to me+} and gives its text…',
    ],
    [
      'words that were changed',
      { description: 'Deletes a file from the disk and gives its text.' },
      '~ /description: [-Reads-]{+Deletes+} a file from the…',
    ],
    [
      'words that were removed',
      { description: 'Reads a file from the disk.' },
      '~ /description: … file from the disk[- and gives its text-].',
    ],
    [
      'what is not seen',
      { description: 'Reads a file from the disk and gives its text.\u200b\u{e0041}' },
      '~ /description: …and gives its text.{+⟨U+200B⟩⟨U+E0041⟩+}',
    ],
    ['a title that is gone', { title: undefined }, '- /title: "Read"'],
    ['an annotation', { annotations: { readOnlyHint: false } }, '+ /annotations/readOnlyHint: false'],
    ['an output schema', { outputSchema: { type: 'object' } }, '+ /outputSchema: {"type":"object"}'],
    [
      'a new property, a removed one and a type',
      schemaWith({ properties: { path: { type: 'number', description: 'Where it is.' }, 'a/b': { type: 'string' } } }),
      [
        '+ /inputSchema/properties/a~1b: {"type":"string"}',
        '- /inputSchema/properties/mode: {"enum":["text","bytes"]}',
        '~ /inputSchema/properties/path/type: [-string-]{+number+}',
      ].join('\n'),
    ],
    [
      'choices',
      schemaWith({
        properties: { path: { type: 'string', description: 'Where it is.' }, mode: { enum: ['text', 'raw'] } },
      }),
      '+ /inputSchema/properties/mode/enum: "raw"\n- /inputSchema/properties/mode/enum: "bytes"',
    ],
    ['what is required', schemaWith({ required: [] }), '- /inputSchema/required: "path"'],
    [
      'another kind of value',
      schemaWith({ additionalProperties: false }),
      '+ /inputSchema/additionalProperties: false',
    ],
    [
      'the order of a list, and not that of keys',
      {
        inputSchema: {
          required: ['path'],
          properties: { mode: { enum: ['bytes', 'text'] }, path: { description: 'Where it is.', type: 'string' } },
          type: 'object',
        },
      },
      '~ /inputSchema/properties/mode/enum: the order is now ["bytes","text"]',
    ],
  ]
  for (const [what, changes, text] of table) it(`tells ${what}`, () => assert.equal(diffOf(changes).text, text))

  it('tells the numbers and kinds of a scalar', () => {
    const { changes } = diffDefinitions({ a: 1, b: true, c: { x: 1 } }, { a: 2, b: 'yes', c: [1] })
    assert.deepEqual(
      changes.map(({ text }) => text),
      ['1 → 2', 'true → "yes"', '{"x":1} → [1]'],
    )
  })

  it('is capped in changes, in texts and in pointers', () => {
    const many = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`p${i}`, { description: 'x'.repeat(700) }]))
    const diff = diffOf({ inputSchema: { type: 'object', properties: { ...many, ['k'.repeat(3000)]: {} } } })
    assert.equal(diff.changes.length, 50)
    assert.ok(diff.more > 30)
    assert.match(diff.text, /… and \d+ more$/)
    assert.ok(diff.text.length < 50 * 900, `${diff.text.length}`)
  })

  it('compares long texts without comparing every word with every other', () => {
    const words = (seed: number) => Array.from({ length: 40_000 }, (_, i) => `w${(i * seed) % 977}`).join(' ')
    const diff = diffOf({ description: words(31) }, { description: words(57) })
    assert.ok(diff.text.length < 2000)
    const beyond = diffOf({ description: `${'a '.repeat(20_000)}b` }, { description: `${'a '.repeat(20_000)}c` })
    assert.match(beyond.text, /40001 → 40001 characters/)
  })

  it('says that it does not know what is not kept', () => {
    assert.equal(diffDefinitions(undefined, {}).text, '~ (all of it): the former definition is no longer stored')
  })
})
