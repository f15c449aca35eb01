import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineTool } from '@toolgate/core'
import { serverConfig } from '../../../fixtures/servers.ts'
import { compareRuleOf, problemOfRule, valueOf } from './compare-rule.ts'

const schema = (fields: readonly string[], required: readonly string[] = []) => ({
  type: 'object' as const,
  properties: Object.fromEntries(fields.map((field) => [field, { type: 'string' }])),
  required,
})
const write = defineTool({ namespace: 'files', name: 'write_file', inputSchema: schema(['path', 'content']) })
const reads = { annotations: { readOnlyHint: true } }
const read = defineTool({
  namespace: 'files',
  name: 'read_file',
  inputSchema: schema(['path', 'head'], ['path']),
  ...reads,
})
const RULE = { text: 'input.content', with: 'read_file', input: { path: 'input.path' } }

describe('compareRuleOf', () => {
  const overlays = {
    'write_*': { compare: RULE },
    write_file: { tags: ['write'] },
    write_raw: { compare: { ...RULE, with: 'raw' } },
  }
  const servers = [serverConfig({ name: 'files', tools: new Map(Object.entries(overlays)) })]

  it('returns the last that matches the tool, with the id of the reader', () => {
    assert.equal(compareRuleOf('files:write_file', servers)?.reader, 'files:read_file')
    assert.equal(compareRuleOf('files:write_raw', servers)?.reader, 'files:raw')
  })

  it('returns none for other tools, other servers and names without a server', () => {
    for (const id of ['files:read_file', 'mail:write_file', 'write_file', ':write_file'])
      assert.equal(compareRuleOf(id, servers), undefined, id)
  })
})

describe('valueOf', () => {
  it('follows own fields, and nothing inherited', () => {
    assert.equal(valueOf('input.a.b', { a: { b: 1 } }), 1)
    for (const field of ['input.a.b', 'input.constructor.name', 'input.a.length', 'input.__proto__.x'])
      assert.equal(valueOf(field, { a: 'text' }), undefined, field)
    assert.equal(valueOf('input.a', undefined), undefined)
  })
})

describe('problemOfRule', () => {
  const names = ['write_file', 'read_file']
  const problem = (rule: Partial<typeof RULE> & object, reader: typeof read | undefined = read) =>
    problemOfRule({ ...RULE, ...rule }, write, reader, names)

  it('finds none in a rule that fits', () => {
    assert.equal(problem({}), undefined)
    const open = defineTool({ namespace: 'files', name: 'read_file', inputSchema: { type: 'object' }, ...reads })
    assert.equal(problem({ input: { path: 'input.path', anything: 'input.path' } } as never, open), undefined)
  })

  const wrong: readonly (readonly [object, string])[] = [
    [{ text: 'input.contents' }, '"input.contents" is no field of "write_file"; did you mean "input.content"?'],
    [{ input: { path: 'input.paht' } }, '"input.paht" is no field of "write_file"; did you mean "input.path"?'],
    [{ input: { path: 'input.path', haed: 3 } }, '"haed" is no field of "read_file"; did you mean "head"?'],
    [{ input: {} }, '"read_file" needs the field "path", which "input" does not have'],
  ]
  for (const [rule, text] of wrong) it(text, () => assert.equal(problem(rule), text))

  it('names the nearest tool where the reader is not there, and refuses one that may write', () => {
    assert.equal(
      problemOfRule({ ...RULE, with: 'read_fil' }, write, undefined, names),
      '"read_fil" names no tool of the server; did you mean "read_file"?',
    )
    const silent = defineTool({ namespace: 'files', name: 'read_file' })
    assert.match(problem({}, silent) ?? '', /^"read_file" is not annotated as read-only; if it is, say so/)
  })
})
