import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineTool, type ToolDefinition } from '../tools/tool.ts'
import { createToolset } from '../tools/toolset.ts'
import { parsePolicies } from './parse.ts'
import type { Policy } from './policy.ts'
import { lintRuns } from './run-lint.ts'

const schemaOf = (...fields: string[]) => ({
  type: 'object',
  properties: Object.fromEntries(fields.map((field) => [field, { type: 'string' }])),
})
const make = (id: string, more: Partial<ToolDefinition> = {}) => {
  const [namespace, name] = id.split(':') as [string, string]
  return defineTool({ namespace, name, ...more } as ToolDefinition)
}
const CHECK = make('fraud:check', { inputSchema: schemaOf('order'), outputSchema: schemaOf('ok'), trusted: true })
const PAY = make('refunds:pay', { inputSchema: schemaOf('order', 'amount') })
const MAIL = make('mail:send', { inputSchema: schemaOf('to', 'cc'), addressees: ['to'], tags: ['egress'] })

const lintWith = (policy: Policy, tools = [CHECK, PAY, MAIL]) =>
  lintRuns(parsePolicies(policy, new Map()), createToolset(tools), {
    names: ['private'],
    of: (tool) => ({ trusted: tool.trusted }),
  })
const codesOf = (...args: Parameters<typeof lintWith>) =>
  lintWith(...args).map(({ code, path, text }) => [code, path, text])

describe('lintRuns', () => {
  it('finds nothing in a rule that can hold', () => {
    const input =
      "!run.called('fraud:check', { 'input.order': input.order, 'output.ok': true }) || 'private' in run.labels"
    assert.deepEqual(codesOf({ deny: [{ match: 'refunds:pay', input }] }), [])
    assert.deepEqual(codesOf({ ask: [{ match: 'mail:send', input: "origin(addressees) != 'user'" }] }), [])
  })

  it('names a label that no output gets, and the nearest one', () => {
    assert.deepEqual(codesOf({ deny: [{ match: 'mail:send', when: "'privat' in run.labels" }] }), [
      ['label_unknown', 'policy[0].deny[0]', 'no output has the label "privat"; did you mean "private"?'],
    ])
    const labelled = make('crm:get', { labels: ['secret'] })
    assert.deepEqual(codesOf({ deny: [{ match: 'mail:send', when: "'secret' in run.labels" }] }, [labelled, MAIL]), [])
  })

  it('names fields of earlier calls that a schema lacks', () => {
    const fields = "{ 'input.ordr': input.oder, 'output.okay': true }"
    assert.deepEqual(codesOf({ deny: [{ match: 'refunds:pay', input: `!run.called('fraud:check', ${fields})` }] }), [
      ['field_unknown', 'policy[0].deny[0]', "run.called('fraud:check') asks for input.ordr, which no such tool has"],
      ['field_unknown', 'policy[0].deny[0]', "run.called('fraud:check') asks for output.okay, which no such tool has"],
    ])
  })

  it('says nothing of a schema that may have more fields than it lists', () => {
    const open = [
      { type: 'object' },
      { ...schemaOf('a'), additionalProperties: { type: 'string' } },
      { allOf: [schemaOf('order')], properties: {} },
      { $ref: '#/$defs/x', $defs: { x: schemaOf('order') }, properties: {} },
    ]
    for (const inputSchema of open) {
      const policy: Policy = { deny: [{ match: 'refunds:pay', when: "run.began('a:b', { 'input.order': 'x' })" }] }
      assert.deepEqual(codesOf(policy, [make('a:b', { inputSchema }), PAY]), [], JSON.stringify(inputSchema))
    }
  })

  it('follows a path into the schema', () => {
    const inputSchema = { type: 'object', properties: { order: schemaOf('id') } }
    const policy = (field: string): Policy => ({
      deny: [{ match: 'refunds:pay', when: `run.began('a:b', { '${field}': 'x' })` }],
    })
    assert.deepEqual(codesOf(policy('input.order.id'), [make('a:b', { inputSchema }), PAY]), [])
    assert.equal(codesOf(policy('input.order.di'), [make('a:b', { inputSchema }), PAY])[0]?.[0], 'field_unknown')
  })

  it('names a prerequisite whose output anybody may have written', () => {
    const policy: Policy = { deny: [{ match: 'refunds:pay', input: "!run.called('web:*', { 'output.ok': true })" }] }
    assert.deepEqual(
      lintWith(policy, [make('web:fetch'), PAY]).map(({ code, tools }) => [code, tools]),
      [['prerequisite_untrusted', ['web:fetch']]],
    )
  })

  it('names tools that send without addressees, where a rule asks for these', () => {
    const policy: Policy = { ask: [{ match: 'web:post', input: "origin(addressees) != 'user'" }] }
    const tools = [make('web:post'), make('chat:say', { tags: ['egress'] }), make('web:get')]
    assert.deepEqual(
      lintWith(policy, tools).map(({ code, tools: named }) => [code, named]),
      [['addressees_missing', ['chat:say', 'web:post']]],
    )
  })

  it('names a memory that is written under taint and trusted when it is read', () => {
    const tools = [
      make('notes:read', { annotations: { readOnlyHint: true }, trusted: true }),
      make('notes:write'),
      make('clock:now', { annotations: { readOnlyHint: true }, trusted: true }),
    ]
    const policy: Policy = { ask: [{ match: 'notes:write', when: "'untrusted' in run.labels" }] }
    assert.deepEqual(
      lintWith(policy, tools).map(({ code, tools: named }) => [code, named]),
      [['memory_trusted', ['notes:read', 'notes:write']]],
    )
  })

  it('finds nothing where no rule reads the run', () => {
    assert.deepEqual(codesOf({ deny: ['mail:*'] }, [make('notes:read', { trusted: true }), make('notes:write')]), [])
  })
})
