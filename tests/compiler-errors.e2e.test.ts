import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

const ROOT = join(import.meta.dirname, '..')
const MAX_WORDS = 40

const BEFORE = `import { createGate, defineTool } from '${ROOT}/packages/core/src/index.ts'
import { createSteps } from '${ROOT}/packages/core/src/entry/steps.ts'
const read = defineTool({ namespace: 'files', name: 'read' })
const tools = { search: defineTool({ name: 'search' }), 'files:read': read, remove: { execute: () => 'gone' } }
const gate = createGate({ tools })
const view = await gate.view({})
type Many = { [Id in \`\${'mail' | 'files' | 'calendar' | 'tracker'}:\${'read' | 'write' | 'search'}_\${'one' | 'all'}\`]: { execute: () => string } }
declare const many: Many
`
/** One line each, with the wrong name and the one that was meant. */
const LINES: readonly (readonly [line: string, wrong: string, meant: string | undefined])[] = [
  ["createGate({ tools, policy: { deny: ['serach'] } })", 'serach', 'search'],
  ["createGate({ tools, policy: { allow: ['search', 'files:raed'] } })", 'files:raed', 'files:read'],
  ["createGate({ tools, policy: [{}, { ask: [{ match: 'serach' }] }] })", 'serach', 'search'],
  ["createGate({ tools, policy: { deny: [{ match: ['remove', 'serach'], when: 'true' }] } })", 'serach', 'search'],
  ["createGate({ tools, aliases: { find: 'search' }, policy: { deny: ['fnid'] } })", 'fnid', 'find'],
  ["createGate({ tools: many, policy: { deny: ['mail:serach_all'] } })", 'mail:serach_all', 'mail:search_all'],
  ["createGate({ tools, policy: { dney: ['search'] } })", 'dney', undefined],
  ['createGate({ tools, limit: [] })', 'limit', 'limits'],
  ["gate.setPolicy({ deny: ['serach'] })", 'serach', 'search'],
  ["void gate.fork({ policy: { deny: ['serach'] } })", 'serach', 'search'],
  ["void gate.view({}, { activeTools: ['serach'] })", 'serach', 'search'],
  ["view.narrow({ policy: { deny: ['serach'] } })", 'serach', 'search'],
  ["view.explain('serach')", 'serach', 'search'],
  ["void view.call({ tool: 'serach' })", 'serach', 'search'],
  [
    "createSteps(view, { prepareStep: ({ hasUsedTool }) => (hasUsedTool('serach') ? undefined : { activeTools: [] }) })",
    'serach',
    'search',
  ],
]
/** These compile. */
const RIGHT = `
createGate({ tools, policy: { deny: ['search', '*', 'files:*', 'tag:x', { match: 'remove', when: ({ caller }) => caller.user === 'x' }] } })
createGate({ tools: { mail: { execute: ({ to }) => to } }, policy: { ask: ['mail', 'request_tools'] } })
createGate({ tools: [read], policy: { deny: ['anything'] } })
createGate({ policy: [{ deny: ['anything'] }] })
createGate({ tools, sources: [{ name: 'live', tools: () => [read], subscribe: (listener) => () => void listener }], policy: { deny: ['later'] } })
view.explain('resource:files:file:///notes')
createSteps(view, { prepareStep: ({ hasUsedTool }) => (hasUsedTool('search') ? undefined : { activeTools: [] }) })
`

describe("the compiler's error for a wrong name", () => {
  let errors: ReadonlyMap<number, string>
  let folder: string
  const first = BEFORE.split('\n').length

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'compiler-errors-'))
    const compilerOptions = {
      composite: false,
      declaration: false,
      declarationMap: false,
      sourceMap: false,
      noEmit: true,
      rewriteRelativeImportExtensions: false,
      allowImportingTsExtensions: true,
      typeRoots: [join(ROOT, 'node_modules/@types')],
    }
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(folder, 'names.ts'), `${BEFORE}${LINES.map(([line]) => line).join('\n')}\n${RIGHT}`)
    const config = { extends: join(ROOT, 'tsconfig.base.json'), compilerOptions, files: ['names.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const { stdout } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder, '--pretty', 'false'], {
      encoding: 'utf8',
    })
    errors = readErrors(stdout)
  })
  after(() => rmSync(folder, { recursive: true }))

  for (const [i, [line, wrong, meant]] of LINES.entries())
    it(`has the name, the nearest one and at most ${MAX_WORDS} words: ${line}`, () => {
      const text = errors.get(first + i) ?? ''
      assert.ok(text.includes(wrong), text)
      if (meant !== undefined) assert.ok(text.includes(`"${meant}"`) || text.includes(`'${meant}'`), text)
      const words = text.split(/\s+/).length
      assert.ok(words <= MAX_WORDS, `${words} words: ${text}`)
    })

  it('is none for right names', () => {
    assert.deepEqual(
      [...errors.keys()],
      LINES.map((_, i) => first + i),
      JSON.stringify([...errors.entries()].filter(([at]) => at < first || at >= first + LINES.length)),
    )
  })
})

/** Returns the whole text of the errors of each line. */
function readErrors(output: string): ReadonlyMap<number, string> {
  const found = new Map<number, string>()
  let at = 0
  for (const line of output.split('\n').filter((text) => text !== '')) {
    const [, row, text] = /^\S*?\((\d+),\d+\): error TS\d+: (.*)$/.exec(line) ?? []
    at = row === undefined ? at : Number(row)
    found.set(at, [found.get(at) ?? '', text ?? line].join(' ').trim())
  }
  return found
}
