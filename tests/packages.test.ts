import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import path from 'node:path'
import { describe, it } from 'node:test'
import { readImports, targetFile } from './support/imports.ts'

/** The packages as users install them: with one SDK, without ours for the tests, and without the sources' condition. */
const ROOT = path.resolve(import.meta.dirname, '..')

/** What has to be there for each entry of the adapters, its types among it: the SDK it is for, and what comes with that. */
const OWN_SDKS: ReadonlyMap<string, readonly string[]> = new Map([
  ['./ai-sdk', ['ai']],
  ['./openai-agents', ['@openai/agents']],
  ['./langchain', ['@langchain/core', '@langchain/langgraph', 'langchain', 'zod']],
  ['./mastra', ['@mastra/core']],
  // A peer of the Claude Agent SDK. The rest of it, as of those below, is declared by its form.
  ['./claude-agent', ['@modelcontextprotocol/sdk']],
  ['./mcp', []],
  ['./openai', []],
  ['./anthropic', []],
  ['./gemini', []],
  ['./run', []],
])

const LOCKED_FIELDS = [
  'version',
  'dependencies',
  'devDependencies',
  'peerDependencies',
  'peerDependenciesMeta',
] as const

type Ranges = Readonly<Record<string, string>>
interface Manifest {
  readonly name: string
  readonly version?: string
  readonly dependencies?: Ranges
  readonly devDependencies?: Ranges
  readonly peerDependencies?: Ranges
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly exports?: Readonly<Record<string, { readonly 'toolgate-source'?: string }>>
}

const manifests = globSync('packages/*/package.json', { cwd: ROOT })
  .toSorted()
  .map((file) => ({ folder: path.dirname(file), manifest: readJson(file) as Manifest }))
const entries = manifests.flatMap(({ folder, manifest }) =>
  Object.entries(manifest.exports ?? {}).flatMap(([entry, { 'toolgate-source': source }]) =>
    source === undefined ? [] : [{ entry, manifest, reached: reach(path.posix.join(folder, source)) }],
  ),
)

describe('each entry of a package', () => {
  for (const { entry, manifest, reached } of entries) {
    it(`${path.posix.join(manifest.name, entry)} imports what its package names`, () => {
      const named = new Set(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }))
      assert.deepEqual(
        reached.packages.filter((name) => !named.has(name)),
        [],
      )
    })

    it(`${path.posix.join(manifest.name, entry)} needs nothing of what is not packed`, () =>
      assert.deepEqual(
        reached.files.filter((file) =>
          /\/src\/(?:matrix\/|(?:.+\/)?testing\/)|\/support\/|\.test(?:-d)?\.ts$/.test(file),
        ),
        [],
      ))
  }
})

describe('each adapter', () => {
  const adapters = entries.filter(({ manifest }) => manifest.name === '@toolgate/adapters')

  it('has its row in the table of SDKs', () =>
    assert.deepEqual(new Set(adapters.map(({ entry }) => entry)), new Set(OWN_SDKS.keys())))

  for (const { entry, manifest, reached } of adapters) {
    const sdks = OWN_SDKS.get(entry) ?? []
    it(`${entry} works with ${sdks.join(', ') || 'no SDK'} alone, a peer that nobody has to install`, () => {
      assert.deepEqual(
        reached.packages.filter((name) => !name.startsWith('@toolgate/')),
        sdks,
      )
      for (const sdk of sdks) assert.equal(manifest.peerDependenciesMeta?.[sdk]?.optional, true, sdk)
    })
  }
})

describe('the lock file', () => {
  const { packages } = readJson('package-lock.json') as { packages: Readonly<Record<string, Manifest>> }

  for (const { folder, manifest } of manifests)
    it(`has ${manifest.name} as its manifest says`, () => {
      for (const field of LOCKED_FIELDS) assert.deepEqual(packages[folder]?.[field], manifest[field], field)
    })
})

/** The files that an entry reaches within its package, and the packages beyond, by types too: they are in its `.d.ts`. */
function reach(entry: string): { readonly files: readonly string[]; readonly packages: readonly string[] } {
  const files = new Set([entry])
  const packages = new Set<string>()
  for (const file of files)
    for (const one of readImports(ROOT, file)) {
      const target = targetFile(one)
      if (target !== undefined) files.add(target)
      else if (!isBuiltin(one.specifier)) packages.add(packageNameOf(one.specifier))
    }
  return { files: [...files], packages: [...packages].toSorted() }
}

function packageNameOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(path.join(ROOT, file), 'utf8'))
}
