import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countOutcomes, filterTools, toSections } from './tool-list.ts'
import type { OutcomeWord, ServerRow, ToolRow } from './wire.ts'

const none = { words: '', outcome: '' }
const tools = [
  row('files:read', 'allow'),
  row('files:write', 'deny', 'policy "Viewers read"'),
  row('web:open', 'wait', 'nothing listens on 127.0.0.1:4444'),
  row('alone', 'ask'),
]

describe('countOutcomes', () => {
  it('counts each of the four words', () => {
    assert.deepEqual(countOutcomes(tools), { allow: 1, ask: 1, wait: 1, deny: 1 })
  })
})

describe('filterTools', () => {
  it('needs every word, in the name or in the reason, whatever the case', () => {
    assert.deepEqual(idsOf(filterTools(tools, { words: 'FILES viewers', outcome: '' })), ['files:write'])
    assert.deepEqual(idsOf(filterTools(tools, { words: ' listens ', outcome: '' })), ['web:open'])
    assert.equal(filterTools(tools, none).length, 4)
  })

  it('keeps one outcome', () => {
    assert.deepEqual(idsOf(filterTools(tools, { words: '', outcome: 'ask' })), ['alone'])
    assert.deepEqual(filterTools(tools, { words: 'files', outcome: 'ask' }), [])
  })
})

describe('toSections', () => {
  const servers = [server('files'), server('down')]

  it('has a section for each server, and for tools that belong to none', () => {
    const sections = toSections(tools, servers, none)
    assert.deepEqual(
      sections.map(({ name, tools: own, server: known }) => [name, own.length, known?.name]),
      [
        ['files', 2, 'files'],
        ['down', 0, 'down'],
        ['web', 1, undefined],
        ['', 1, undefined],
      ],
    )
  })

  it('keeps the whole of a section beside what the filter shows, and drops those that show nothing', () => {
    const [section, ...others] = toSections(tools, servers, { words: 'write', outcome: '' })
    assert.deepEqual([section?.tools.length, section?.shown.length, others.length], [2, 1, 0])
  })

  it('is not fooled by the names of an object', () => {
    assert.equal(toSections([row('__proto__:x', 'deny'), row('constructor:y', 'deny')], [], none).length, 2)
  })
})

function idsOf(rows: readonly ToolRow[]): string[] {
  return rows.map(({ id }) => id)
}

function row(id: string, outcome: OutcomeWord, text?: string): ToolRow {
  const reasons =
    text === undefined ? [] : [{ layer: 'policy', code: 'policy_denied', outcome, order: 0, text } as const]
  return {
    id,
    wireName: id.replace(':', '__'),
    description: '',
    tags: [],
    outcome,
    visible: outcome === 'allow',
    reasons,
  }
}

function server(name: string): ServerRow {
  return { name, status: 'ready', since: 0, restarts: 0, toolCount: 0, rejected: [] }
}
