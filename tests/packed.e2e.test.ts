import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { type Analysis, checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { tempFolder } from './support/gateway.ts'
import { send } from './support/http.ts'
import { MODERN, type RpcAnswer, toMessage } from './support/rpc.ts'

/** The packages as users get them: packed, installed into an empty folder, and run from there. */

const ROOT = path.resolve(import.meta.dirname, '..')
/** The oldest Node that the packages run on, which only this test has, and the one of the repository. */
const NODES = [
  ['22', path.join(ROOT, 'tests/node22/node_modules/node/bin/node')],
  ['24', process.execPath],
] as const
/** A long timeout for the compiler and npm on a machine with two cores. */
const PATIENT = { timeout: 900_000 }

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly license?: string
  readonly files?: readonly string[]
  readonly repository?: { readonly directory?: string }
  readonly exports?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

interface Sbom {
  readonly components: readonly { readonly purl: string }[]
}

interface Packed {
  readonly folder: string
  readonly manifest: Manifest
  readonly tarball: string
  readonly files: ReadonlySet<string>
}

/** The gateway, and the packages that it stands on. */
const LIBRARY = ['values', 'core', 'change', 'expose', 'stores', 'mcp', 'gateway'].map((name) => `@toolgate/${name}`)
const folder = tempFolder()
const packed = new Map<string, Packed>()

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 1e8 })
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** Packs all at once: one npm, rather than one for each. */
function packAll(folders: readonly string[]): readonly Packed[] {
  const workspaces = folders.flatMap((at) => ['--workspace', at])
  const out = run('npm', ['pack', '--json', '--silent', '--pack-destination', folder.path, ...workspaces], ROOT)
  const all = JSON.parse(out.slice(out.indexOf('['))) as {
    name: string
    filename: string
    files: { path: string }[]
  }[]
  return folders.map((at) => {
    const manifest = JSON.parse(readFileSync(path.join(ROOT, at, 'package.json'), 'utf8')) as Manifest
    const { filename, files } = all.find(({ name }) => name === manifest.name) ?? assert.fail(manifest.name)
    const tarball = path.join(folder.path, filename)
    return { folder: at, manifest, tarball, files: new Set(files.map((file) => file.path)) }
  })
}

describe('the packed packages', PATIENT, () => {
  before(() => {
    run(process.execPath, [path.join(ROOT, 'node_modules/typescript/bin/tsc'), '-b'], ROOT)
    const folders = globSync('packages/*/package.json', { cwd: ROOT })
      .toSorted()
      .filter((file) => !(JSON.parse(readFileSync(path.join(ROOT, file), 'utf8')) as Manifest).private)
      .map((file) => path.dirname(file))
    for (const one of packAll(folders)) packed.set(one.manifest.name, one)
  }, PATIENT)
  after(() => folder.remove())

  it('each have a README, a license, a list of files and a repository', () => {
    assert.ok(packed.size >= 6)
    for (const { folder: at, manifest, files } of packed.values()) {
      assert.deepEqual(
        ['README.md', 'LICENSE', 'package.json'].filter((name) => !files.has(name)),
        [],
        at,
      )
      assert.deepEqual([manifest.license, manifest.repository?.directory], ['Apache-2.0', at])
      assert.ok(manifest.files !== undefined, at)
    }
  })

  it('have every file of their entries', () => {
    for (const { manifest, files } of packed.values())
      for (const [entry, conditions] of Object.entries(manifest.exports ?? {}))
        for (const [condition, target] of Object.entries(conditions))
          assert.ok(files.has(path.posix.normalize(target)), `${manifest.name} ${entry}: ${condition} ${target}`)
  })

  it('have the whole command in one bundle, with what it reads and the licences of what it contains', () => {
    const { files } = packed.get('toolgate') ?? assert.fail('toolgate')
    for (const file of [
      'dist/main.js',
      'dist/change-thread.js',
      'assets/loopback.js',
      'console/index.html',
      'openapi.json',
      'quickstart/toolgate.yaml',
      'sbom.cdx.json',
    ])
      assert.ok(files.has(file), file)
    assert.deepEqual(
      [...files].filter((file) => file.startsWith('src/') || file.includes('.cache')),
      [],
    )
    const notices = readFileSync(path.join(ROOT, 'packages/cli/THIRD-PARTY-NOTICES.md'), 'utf8')
    const sbom = JSON.parse(readFileSync(path.join(ROOT, 'packages/cli/sbom.cdx.json'), 'utf8')) as Sbom
    const purls = sbom.components.map(({ purl }) => purl.replace('%40', '@'))
    const headings = [...notices.matchAll(/^## (\S+)(?: -)? (\d\S+) \(.+\)$/gm)]
    assert.deepEqual(
      purls,
      headings.map(([, name, version]) => `pkg:npm/${name}@${version}`),
    )
    for (const name of ['zod', 'undici', 'commander', 'react'])
      assert.ok(
        purls.some((purl) => purl.startsWith(`pkg:npm/${name}@`)),
        name,
      )
  })

  it('have no tests, fixtures, build state or run data', () => {
    const STRANGE =
      /\.test\.|\.test-d\.|tsbuildinfo|^(?:dist|src)\/matrix\/|(^|\/)(fixtures|cases|snapshots|\.toolgate)\/|\.db(-wal|-shm)?$|plan\.md$/
    for (const { manifest, files } of packed.values())
      assert.deepEqual(
        [...files].filter((file) => STRANGE.test(file) || /(^|\/)(?:testing|support)[/.]/.test(file)),
        [],
        manifest.name,
      )
  })

  it('are clean by publint: every entry, file and field', async () => {
    for (const { folder: at, tarball } of packed.values()) {
      const { messages } = await publint({ pack: { tarball: toArrayBuffer(tarball) } })
      assert.deepEqual(messages, [], at)
    }
  })

  it('are clean by attw: every entry has types, for programs of ES modules', async () => {
    for (const { manifest, tarball } of packed.values()) {
      if (manifest.exports === undefined) continue
      const { problems } = (await checkPackage(createPackageFromTarballData(readFileSync(tarball)))) as Analysis
      // The packages are ES modules only, and say so: programs of CommonJS load them with Node's require of ES modules.
      const known = new Set(['CJSResolvesToESM'])
      assert.deepEqual(
        problems.filter((one) => !('resolutionKind' in one && one.resolutionKind === 'node10') && !known.has(one.kind)),
        [],
        manifest.name,
      )
    }
  })

  describe('installed into empty folders', PATIENT, () => {
    before(() => {
      install(path.join(folder.path, 'command'), ['toolgate'])
      install(path.join(folder.path, 'library'), LIBRARY)
    }, PATIENT)

    for (const [version, node] of NODES) describe(`under Node ${version}`, PATIENT, () => runsInstalled(version, node))
  })
})

/** The tests of what is installed from the packed files. */
function runsInstalled(version: string, node: string): void {
  const home = path.join(folder.path, `command-${version}`)
  const library = path.join(folder.path, `library-${version}`)
  const bin = path.join(home, 'node_modules/.bin/toolgate')
  const { PORT: _, ...env } = process.env
  const own = { ...env, NO_COLOR: '1', PATH: `${path.dirname(node)}${path.delimiter}${env['PATH']}` }
  const toolgate = (...args: string[]) => spawnSync(node, [bin, ...args], { cwd: home, encoding: 'utf8', env: own })

  // npm writes the same for each.
  before(() => {
    for (const [from, to] of [
      ['command', home],
      ['library', library],
    ] as const)
      cpSync(path.join(folder.path, from), to, { recursive: true, verbatimSymlinks: true })
  })

  it('is that Node', () => assert.match(run(node, ['--version'], home), new RegExp(`^v${version}\\.`)))

  it('the command needs no other package, and takes at most 40 MB', () => {
    assert.deepEqual(
      readdirSync(path.join(home, 'node_modules')).filter((name) => !name.startsWith('.')),
      ['toolgate'],
    )
    const bytes = globSync('node_modules/toolgate/**', { cwd: home, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .reduce((sum, { parentPath, name }) => sum + statSync(path.join(parentPath, name)).size, 0)
    assert.ok(bytes < 40_000_000, `${bytes} bytes`)
  })

  it('prints its version', () => {
    const { status, stdout, stderr } = toolgate('--version')
    assert.deepEqual([status, stderr], [0, ''])
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/)
  })

  it('every entry of the libraries can be imported', () => {
    const names = LIBRARY.flatMap((name) =>
      Object.keys(packed.get(name)?.manifest.exports ?? {}).map((entry) => path.posix.join(name, entry)),
    )
    /** These need an optional peer. */
    const alone = names.filter((name) => !/\/(?:testing|tokens|telemetry)$/.test(name))
    const text = alone.map((name) => `await import(${JSON.stringify(name)})`).join('\n')
    writeFileSync(path.join(library, 'import.js'), text)
    run(node, ['import.js'], library)
  })

  it('the commands of the README know what they are asked', () => {
    const init = toolgate('init')
    assert.deepEqual([init.status, init.stderr], [0, ''])
    // Not started: npx would fetch it first, within the time that a server has to start.
    const add = toolgate(
      'add',
      'files',
      '--no-start',
      '--',
      'npx',
      '-y',
      '@modelcontextprotocol/server-filesystem',
      '.',
    )
    assert.equal(add.status, 0, add.stderr)
    const { status, stdout, stderr } = toolgate('check', 'toolgate.yaml')
    assert.equal(status, 0, stderr)
    assert.match(stdout, /^ok {2}toolgate\.yaml: 1 server/)
  })

  it('try says what it installs, and runs the quickstart up to its first answers', PATIENT, async (t) => {
    const child = spawn(node, [bin, 'try', '--port', '0'], {
      cwd: home,
      env: own,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.after(() => child.kill('SIGKILL'))
    const lines: string[] = []
    let url = ''
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line)
      url = /^ {2}MCP {6}(http:\S+)$/.exec(line)?.[1] ?? ''
      if (url) break
    }
    assert.match(lines[0] ?? '', /^The quickstart needs demo servers/)
    const call = { name: 'files__read_text_file', arguments: { path: 'README.md' } }
    const { headers, body } = toMessage(MODERN, 'tools/call', call)
    const answer = await send(url || assert.fail('the quickstart ended before it was ready'), {
      headers: { ...headers, authorization: 'Bearer demo-viewer' },
      body: JSON.stringify(body),
    })
    const { result } = answer.json() as RpcAnswer
    assert.ok(result && result.isError !== true, JSON.stringify(result))
    const why = toolgate(
      'why',
      'files:write_file',
      '--as',
      'viewer',
      '--url',
      new URL(url).origin,
      '--key',
      'demo-console',
    )
    assert.equal(why.status, 1, why.stderr)
    const question = await send(`${new URL(url).origin}/api/test`, {
      headers: { authorization: 'Bearer demo-console', 'content-type': 'application/json' },
      body: JSON.stringify({ tests: 'tests: []' }),
    })
    assert.deepEqual((question.json() as { files: unknown }).files, [{ file: 'tests', tests: [] }])
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  })
}

/** Installs packed packages into an empty project. */
function install(at: string, names: readonly string[]): void {
  mkdirSync(at)
  writeFileSync(path.join(at, 'package.json'), '{ "private": true, "type": "module" }')
  const tarballs = names.map((name) => packed.get(name)?.tarball ?? assert.fail(name))
  const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock', '--silent', '--ignore-scripts']
  run('npm', ['install', ...quiet, ...tarballs], at)
}

function toArrayBuffer(file: string): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = readFileSync(file)
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer
}
