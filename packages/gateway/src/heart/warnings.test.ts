import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool, type GateOptions } from '@toolgate/core'
import type { NameClash } from '@toolgate/mcp'
import type { UpstreamSource } from '../servers/catalog/sources.ts'
import type { GatewayConfig } from '../config/config.ts'
import type { Revision } from '../auth/revision.ts'
import { createWarnings } from './warnings.ts'

const files = ['read_file', 'remove'].map((name) => defineTool({ namespace: 'files', name }))

/** The warnings of a gateway with the server `files`, and what it logged. */
interface OpenOptions extends GateOptions {
  readonly warnings?: GatewayConfig['warnings']
  readonly offersByDefault?: true
}

function open(options: OpenOptions = {}) {
  const lines: string[] = []
  const clashes: NameClash[] = []
  const state = { tools: [] as typeof files, isListed: false }
  const listeners = new Set<() => void>()
  const source: Omit<UpstreamSource, 'idle'> = {
    name: 'files',
    namespaces: ['files'],
    own: undefined,
    isListed: () => state.isListed,
    rejected: [],
    rejectedHere: [],
    dropped: ['resources', 'prompts'],
    unlisted: () => undefined,
    get toolNames() {
      return state.tools.map(({ name }) => name)
    },
    tools: () => state.tools,
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const overlay = new Map([
    ['read_*', {}],
    ['raed_file', {}],
    ['x*', {}],
  ])
  const { warnings: ofFile, offersByDefault, ...rest } = options
  const servers = [{ name: 'files', tools: overlay, offersByDefault }]
  const config = { servers, warnings: ofFile ?? [] } as unknown as Revision
  const warnings = createWarnings({
    config: () => config,
    sources: () => [source],
    gate: () => gate,
    contested: () => [],
    clashes: () => clashes,
    log: (text) => lines.push(text),
  })
  const gate = createGate({ sources: [source], onWarning: warnings.logOfGate, ...rest })
  gate.catalog.subscribe(warnings.logNew)
  return {
    gate,
    lines,
    clashes,
    paths: () => warnings.list().map(({ path }) => path),
    list(tools: typeof files) {
      Object.assign(state, { tools, isListed: true })
      for (const listener of listeners) listener()
    },
    warnings,
  }
}

const OVERLAYS = ['servers.files.tools.raed_file', 'servers.files.tools["x*"]']

describe('createWarnings', () => {
  it('names what a server has and its entry does not offer, unless the entry decides', () => {
    const { lines, list, warnings } = open({ offersByDefault: true })
    list(files)
    const text =
      'the server also has resources and prompts, which its entry does not offer; ' +
      'add "offers: [tools, resources, prompts]", or "offers: [tools]" to keep it so'
    assert.ok(lines.includes(`servers.files: ${text}`))
    assert.ok(warnings.list().some((warning) => warning.code === 'not_offered' && warning.text === text))
    const decided = open()
    decided.list(files)
    assert.ok(!decided.lines.some((line) => line.startsWith('servers.files: ')))
  })

  it('logs each name that nothing has when its server has listed its tools, once', () => {
    const { lines, list } = open({ policy: { deny: ['files:raed_file'] }, concurrency: 'files:x*:1' })
    assert.equal(lines.length, 0)
    list(files)
    list(files.slice(0, 1))
    assert.deepEqual(lines.toSorted(), [
      'calls.concurrency[0]: "files:x*" names no tool',
      'policy[0].deny[0]: "files:raed_file" names no tool; the nearest are "files:read_file", "files:remove"',
      'servers.files.tools.raed_file: "raed_file" names no tool of the server; did you mean "read_file"?',
      'servers.files.tools["x*"]: "x*" names no tool of the server',
    ])
  })

  it('lists current problems, and no longer lists solved ones', async () => {
    const { gate, paths, list } = open({ policy: { deny: ['files:late'] } })
    list(files)
    assert.deepEqual(paths(), ['policy[0].deny[0]', ...OVERLAYS])
    const halt = await gate.halt({ tool: 'files:none', reason: 'x' })
    assert.deepEqual(paths(), ['policy[0].deny[0]', 'halts[0].tool', ...OVERLAYS])
    await gate.release(halt)
    list([...files, ...['late', 'raed_file', 'x1'].map((name) => defineTool({ namespace: 'files', name }))])
    assert.deepEqual(
      paths().filter((path) => path !== 'policy[0].deny[0]' && path !== 'tools'),
      [],
    )
    gate.setPolicy({ allow: ['*'] })
    assert.deepEqual(
      paths().filter((path) => path !== 'tools'),
      [],
    )
  })

  it('logs and lists a keyword of a schema that is not checked', () => {
    const { lines, paths, list } = open()
    const inputSchema = { properties: { path: { pattern: '(a)\\1' } } }
    list([...files, defineTool({ namespace: 'files', name: 'x', inputSchema })])
    const path = 'tools.files:x.inputSchema/properties/path/pattern'
    assert.ok(
      lines.includes(`${path}: is not checked: this pattern cannot be run, it has a backreference`),
      lines.join(),
    )
    assert.ok(paths().includes(path))
  })

  it('reports a problem once that the file alone shows', () => {
    const problem = {
      code: 'selector_unmatched',
      file: 'f',
      line: 1,
      column: 1,
      path: 'policy[0].deny[0]',
      message: 'no server is named "fiels"',
    } as const
    const { lines, paths, list } = open({ policy: { deny: ['fiels:*'] }, warnings: [problem] })
    list(files)
    assert.deepEqual(lines.slice(0, 1), ['policy[0].deny[0]: no server is named "fiels"'])
    assert.equal(lines.filter((line) => line.startsWith('policy')).length, 1)
    assert.deepEqual(paths(), ['policy[0].deny[0]', ...OVERLAYS])
  })

  it('logs each clash of names once, and names all tools', () => {
    const { lines, clashes, list } = open()
    const ids = ['files:find', 'web:find']
    clashes.push({ name: 'find', ids, isPrefixed: true }, { name: 'a__b', ids, isPrefixed: false })
    clashes.push({ name: 'search_tools', ids: ['web:search_tools'], isPrefixed: true })
    list(files)
    list(files.slice(0, 1))
    assert.deepEqual(
      lines.filter((line) => line.startsWith('names: ')),
      [
        'names: "files:find" and "web:find" would be "find" without a prefix; clients get the prefix where they see several of them. Rename one in "tools" of its server',
        'names: "files:find" and "web:find" are left out: clients would know them all by the name "a__b". Rename one in "tools" of its server',
        `names: "web:search_tools" would be "search_tools" without a prefix, as is a tool of the gateway itself; clients get the prefix. Rename one in "tools" of its server`,
      ],
    )
  })

  it('lints once for each policy, catalog and list of halts', () => {
    const { gate, warnings } = open()
    let lints = 0
    const { lint } = gate
    Object.assign(gate, {
      lint: () => {
        lints++
        return lint()
      },
    })
    warnings.list()
    warnings.list()
    assert.equal(lints, 1)
    gate.setPolicy({ deny: ['no:such'] })
    warnings.list()
    assert.equal(lints, 2)
  })
})
