import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'

const ROOT = path.resolve(import.meta.dirname, '..')
const CONDITION = 'toolgate-source'
const WORKERD = path.join(ROOT, 'node_modules/.bin/workerd')
const run = promisify(execFile)

/** A bundled program's use of core: start, list, decide, call with a checked input, and redact. */
const MAIN = `
import { createGate, defineTool } from '@toolgate/core'
import { createRedactor } from '@toolgate/values/redact'

async function main() {
  const read = defineTool({
    name: 'read', tags: ['read'],
    inputSchema: { type: 'object', properties: { path: { type: 'string', pattern: '^[a-z/]+$' } }, required: ['path'] },
    execute: ({ path }) => 'read ' + path,
  })
  const gate = createGate({
    tools: [read, defineTool({ name: 'drop', tags: ['danger'], execute: () => 'dropped' }), defineTool({ name: 'r\\u0435ad' })],
    policy: { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }] },
  })
  const view = await gate.view({ user: 'vera', roles: [] })
  const done = await view.call({ tool: 'read', input: { path: 'a/b' } })
  const refused = await view.call({ tool: 'read', input: { path: 'A' } })
  return {
    ids: view.ids, drop: view.explain('drop').outcome, done: done.output, refused: refused.text,
    alike: gate.lint().some(({ text, message }) => String(text ?? message).includes('look alike')),
    redacted: createRedactor({ patterns: ['INT-[0-9]{4}'] }).redactText('see INT-1234'),
  }
}
`
const PROGRAM = `${MAIN}
main().then((result) => console.log(JSON.stringify(result)))
`

/** As workerd runs it. It forbids making code from text, here too: `generates` shows it. */
const WORKER = `${MAIN}
function generates() {
  try {
    return new Function('return true')()
  } catch {
    return false
  }
}
export default {
  async test() {
    console.log(JSON.stringify({ ...(await main()), generates: generates() }))
  },
}
`

const EXPECTED = {
  ids: ['read', 'r\u0435ad'],
  drop: 'deny',
  done: 'read a/b',
  refused: 'TOOL_CALL_BLOCKED: invalid input at "/path": must match pattern "^[a-z/]+$"',
  alike: true,
  redacted: 'see [redacted:pattern]',
}

type Bundle = (entry: string, file: string) => Promise<unknown>

const withEsbuild =
  (format: 'esm' | 'cjs'): Bundle =>
  (entryPoint, outfile) =>
    build({
      entryPoints: [entryPoint],
      outfile,
      format,
      bundle: true,
      platform: 'node',
      conditions: [CONDITION],
      logLevel: 'silent',
    })

const withRolldown =
  (format: 'esm' | 'cjs'): Bundle =>
  async (input, file) => {
    const bundle = await rolldown({
      input,
      platform: 'node',
      resolve: { conditionNames: [CONDITION, 'import', 'node', 'default'] },
      logLevel: 'silent',
    })
    await bundle.write({ file, format, codeSplitting: false })
    await bundle.close()
  }

const BUN = path.join(ROOT, 'node_modules/.bin/bun')

const withBun =
  (format: 'esm' | 'cjs'): Bundle =>
  (entry, file) =>
    run(
      BUN,
      ['build', entry, '--target=node', `--format=${format}`, `--conditions=${CONDITION}`, `--outfile=${file}`],
      { cwd: ROOT },
    )

/** Bun has no binary for some kinds of machines. */
const hasBun = spawnSync(BUN, ['--version']).status === 0

const BUNDLERS: Readonly<Record<string, readonly [extension: string, bundle: Bundle]>> = {
  'esbuild as ESM': ['mjs', withEsbuild('esm')],
  'esbuild as CJS': ['cjs', withEsbuild('cjs')],
  'rolldown as ESM': ['mjs', withRolldown('esm')],
  'rolldown as CJS': ['cjs', withRolldown('cjs')],
  ...(hasBun ? { 'bun as ESM': ['mjs', withBun('esm')], 'bun as CJS': ['cjs', withBun('cjs')] } : {}),
}

/** The flag is for `node:crypto` and `node:util`. It is the default from 2026-08-04 on. */
const WORKERD_CONFIG = `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "main", worker = .main)]);
const main :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
  compatibilityDate = "2025-05-05",
  compatibilityFlags = ["nodejs_compat"],
);
`

describe('core, bundled', () => {
  let source = ''
  let away = ''
  before(() => {
    // In the repository, so that the bundlers find the package. The output runs outside of it.
    source = mkdtempSync(path.join(ROOT, 'tests', '.bundle-'))
    away = mkdtempSync(path.join(tmpdir(), 'toolgate-bundle-'))
    writeFileSync(path.join(source, 'program.ts'), PROGRAM)
    writeFileSync(path.join(source, 'worker.ts'), WORKER)
  })
  after(() => {
    for (const folder of [source, away]) rmSync(folder, { recursive: true, force: true })
  })

  for (const [name, [extension, bundle]] of Object.entries(BUNDLERS)) {
    it(`starts, lists, decides, calls and redacts, bundled into one file by ${name}`, async () => {
      const file = path.join(away, `${name.replaceAll(' ', '-')}.${extension}`)
      await bundle(path.join(source, 'program.ts'), file)
      const { stdout } = await run(process.execPath, [file], { cwd: away, env: { PATH: process.env['PATH'] } })
      assert.deepEqual(JSON.parse(stdout), EXPECTED)
    })
  }

  it('does the same in workerd, which makes no code from text', async () => {
    await build({
      entryPoints: [path.join(source, 'worker.ts')],
      outfile: path.join(away, 'worker.mjs'),
      format: 'esm',
      bundle: true,
      platform: 'neutral',
      mainFields: ['module', 'main'],
      external: ['node:*'],
      conditions: [CONDITION, 'workerd'],
      logLevel: 'silent',
    })
    writeFileSync(path.join(away, 'config.capnp'), WORKERD_CONFIG)
    const { stdout } = await run(WORKERD, ['test', path.join(away, 'config.capnp')], { cwd: away })
    assert.deepEqual(JSON.parse(stdout), { ...EXPECTED, generates: false })
  })
})
