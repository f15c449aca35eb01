import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  countOutcomes,
  filterTools,
  toItems,
  toName,
  toNamespace,
  toSections,
  type ToolListFilter,
} from './tool-list.ts'
import type { GroupRow, OutcomeWord, ServerRow, ToolRow } from './wire.ts'

const none = { words: '', outcome: '' }
const tools = [
  row('files:read', 'allow'),
  row('files:write', 'deny', 'policy "Viewers read"'),
  row('web:open', 'wait', 'nothing listens on 127.0.0.1:4444'),
  row('alone', 'ask'),
]

describe('countOutcomes', () => {
  it('counts each outcome', () => {
    assert.deepEqual(countOutcomes(tools), { allow: 1, ask: 1, wait: 1, deny: 1 })
  })
})

describe('filterTools', () => {
  it('requires every word, in the name or the reason, in any case', () => {
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
  const servers = [server('files'), server('idle')]

  it('has a section for each group, each server, and the tools without a server', () => {
    const groups = [group('disk', ['files:read', 'gone:x']), group('shut', ['web:open'], { available: false })]
    const sections = toSections({ kind: 'tool', tools, servers, groups }, none)
    assert.deepEqual(
      sections.map(({ key, tools: own }) => [key, ...own.map(({ id }) => id)]),
      [
        ['group shut', 'web:open'],
        ['group disk', 'files:read'],
        ['server files', 'files:write'],
        ['server idle'],
        ['server ', 'alone'],
      ],
    )
  })

  it('puts servers that are down first', () => {
    const down = { ...server('idle'), status: 'down' } as const
    const sections = toSections({ kind: 'tool', tools, servers: [server('files'), down], groups: [] }, none)
    assert.equal(sections[0]?.server?.name, 'idle')
  })

  it('keeps all tools of a section beside the shown ones, and drops sections that show none', () => {
    const [section, ...others] = toSections(
      { kind: 'tool', tools, servers, groups: [] },
      { words: 'write', outcome: '' },
    )
    assert.deepEqual([section?.tools.length, section?.shown.length, others.length], [2, 1, 0])
  })

  it('finds the tools of a group by the name of the group', () => {
    const groups = [group('disk', ['files:read', 'files:write'])]
    const sections = toSections({ kind: 'tool', tools, servers, groups }, { words: 'group:disk write', outcome: '' })
    assert.deepEqual(
      sections.map(({ key, shown }) => [key, ...idsOf(shown)]),
      [['group disk', 'files:write']],
    )
  })

  it('shows only the tools of an app', () => {
    const groups = [group('disk', ['files:read']), group('other', ['alone'])]
    const app = {
      name: 'research',
      path: '/mcp/research',
      groups: ['disk'],
      tools: ['files:read', 'web:open'],
      available: 1,
    }
    const sections = toSections({ kind: 'tool', tools, servers, groups }, { ...none, app })
    assert.deepEqual(
      sections.map(({ key, shown }) => [key, ...idsOf(shown)]),
      [
        ['group disk', 'files:read'],
        ['server web', 'web:open'],
      ],
    )
  })

  it('has the resources of each server, whatever groups and apps have as tools', () => {
    const resources = [
      { ...row('resource:files:file:///a.md', 'allow'), kind: 'resource' as const },
      { ...row('resource:files:db:///b', 'deny'), kind: 'resource' as const },
    ]
    const groups = [group('disk', ['files:read'])]
    const app = { name: 'desk', path: '/mcp/desk', groups: ['disk'], tools: ['files:read'], available: 1 }
    const body = { kind: 'resource' as const, tools: resources, servers, groups }
    const keysOf = (filter: ToolListFilter) => toSections(body, filter).map(({ key, shown }) => [key, ...idsOf(shown)])
    const files = ['server files', 'resource:files:file:///a.md', 'resource:files:db:///b']
    assert.deepEqual(keysOf(none), [files, ['server idle']])
    assert.deepEqual(keysOf({ ...none, app }), [files])
    assert.deepEqual(keysOf({ ...none, words: 'a.md' }), [['server files', 'resource:files:file:///a.md']])
  })

  it('handles names that objects inherit', () => {
    const rows = [row('__proto__:x', 'deny'), row('constructor:y', 'deny')]
    assert.equal(toSections({ kind: 'tool', tools: rows, servers: [], groups: [] }, none).length, 2)
  })
})

describe('toNamespace and toName', () => {
  it('take an id of any kind apart', () => {
    const ids = ['files:read', 'alone', 'resource:files:file:///a:b', 'resource:db:{+x}', 'prompt:git:review', 'x:y:z']
    assert.deepEqual(
      ids.map((id) => [toNamespace(id), toName(id)]),
      [
        ['files', 'read'],
        ['', 'alone'],
        ['files', 'file:///a:b'],
        ['db', '{+x}'],
        ['git', 'review'],
        ['x', 'y:z'],
      ],
    )
  })
})

describe('toItems', () => {
  it('has a line for each section and tool, and only the head of a closed section', () => {
    const sections = toSections({ kind: 'tool', tools, servers: [], groups: [] }, none)
    const keys = (closed: string[]) => toItems(sections, new Set(closed)).map(({ key }) => key)
    assert.deepEqual(keys(['server files']), [
      'server files',
      'server web',
      'server web web:open',
      'server ',
      'server  alone',
    ])
    assert.equal(keys([]).length, 7)
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
    kind: 'tool',
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

function group(name: string, ids: readonly string[], more: Partial<GroupRow> = {}): GroupRow {
  return { name, visibility: 'conditional', available: true, tools: ids, ...more }
}
