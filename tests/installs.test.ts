import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'

/** No page and no file that we write may have somebody install a name on npm that is not ours. */

const ROOT = path.resolve(import.meta.dirname, '..')
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8')
const pages = globSync(
  [
    '*.md',
    'docs/**/*.md',
    'packages/*/README.md',
    'examples/**/*.{md,yaml,ts,tsx,js,py,json}',
    'deploy/**/{Dockerfile,*.yaml,*.yml,*.service}',
    '.github/**/*.{md,yml}',
  ],
  { cwd: ROOT, exclude: (name) => name === 'node_modules' },
).toSorted()
const sources = globSync('packages/{cli,gateway,console}/src/**/*.{ts,tsx}', { cwd: ROOT })
  .filter((file) => !/\.test\.tsx?$/.test(file))
  .toSorted()

/** Packages of others that are dependencies here, and programs of theirs. */
const PUBLIC = new Set([
  ...globSync('{package.json,packages/*/package.json,examples/*/package.json}', { cwd: ROOT }).flatMap((file) => {
    const manifest = JSON.parse(read(file)) as Readonly<Record<string, Readonly<Record<string, string>> | undefined>>
    return ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'].flatMap((kind) =>
      Object.keys(manifest[kind] ?? {}),
    )
  }),
  // The programs of @modelcontextprotocol/inspector and @changesets/cli.
  'mcp-inspector',
  'changeset',
  // What an example compares itself with.
  '@langchain/langgraph-cli',
  // Named by the page about telemetry, for hosts that export.
  '@opentelemetry/sdk-node',
  '@opentelemetry/exporter-trace-otlp-proto',
])
const isOurs = (name: string) => name === 'toolgate' || name.startsWith('@toolgate/')
/** The command of a clone, in pages that say so. */
const IN_CLONE = new Set(['README.md', 'docs/guide/cli.md', 'packages/cli/src/files.ts'])
const isInClone = (file: string) =>
  IN_CLONE.has(file) || file.startsWith('examples/') || file.startsWith('docs/decisions/')

const INSTALL = /\bnpm (?:install|i)\b([^\n`"#&]*)/g
const NPX = /\bnpx((?: +-{1,2}[a-z]+)*) +([@a-z][\w@/.-]*)/g
const NPX_LIST = /\bnpx['"]?,? *(?:\n *)?(?:['"]?args['"]?: *)?\[?((?:['"]-y['"], *)?)['"]([@\w/.-]+)['"]/g

function namesIn(text: string): readonly string[] {
  const installed = [...text.matchAll(INSTALL)].flatMap(([, words = '']) => words.trim().split(/\s+/).filter(isName))
  const run = [...text.matchAll(NPX), ...text.matchAll(NPX_LIST)].map(([, , name = '']) => name)
  return [...installed, ...run].map((name) => name.replace(/(.)@[\w.^~-]+$/, '$1'))
}

function isName(word: string, i: number, words: readonly string[]): boolean {
  return /^@?[a-z][\w./-]*(?:@\S+)?$/.test(word) && words[i - 1] !== '--prefix'
}

describe('packages that pages and written files install', () => {
  it('are found in a text', () => {
    assert.deepEqual(namesIn('npm install --prefix /opt/x toolgate@latest'), ['toolgate'])
    assert.deepEqual(namesIn('npm install ./packs/toolgate-0.1.0.tgz --no-audit'), [])
    assert.deepEqual(namesIn('npx -y toolgate stdio'), ['toolgate'])
    assert.deepEqual(namesIn('"command": "npx",\n "args": ["toolgate", "stdio"]'), ['toolgate'])
    assert.deepEqual(namesIn("['npx', '-y', 'toolgate']"), ['toolgate'])
    assert.deepEqual(namesIn('command: npx\n    args: ["-y", "@a/b"]'), ['@a/b'])
  })

  const wrongIn = (files: readonly string[]) =>
    files.flatMap((file) =>
      namesIn(read(file))
        .filter((name) => (isOurs(name) ? !isInClone(file) : !PUBLIC.has(name)))
        .map((name) => `${file}: ${name}`),
    )

  it('exist on every page, and are ours only where the page is about a clone', () => {
    assert.ok(pages.length > 70, `${pages.length} pages`)
    assert.deepEqual(wrongIn(pages), [])
  })

  it('exist in the output of programs, too', () => {
    assert.ok(sources.length > 300, `${sources.length} files`)
    assert.deepEqual(wrongIn(sources), [])
  })

  it('are said to be unpublished where ours are installed', () => {
    for (const file of [
      'README.md',
      'docs/guide/running.md',
      'docs/guide/frameworks.md',
      'docs/guide/cli.md',
      'docs/guide/own-servers.md',
    ])
      assert.match(read(file), /on npm/i, file)
    for (const file of globSync('packages/*/README.md', { cwd: ROOT })) assert.match(read(file), /on npm/, file)
  })
})
