import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'

/** Sends `tools/list` and returns the status of the answer. */
async function statusOf(url: string): Promise<number> {
  const headers = {
    authorization: 'Bearer a-key-of-sixteen-characters',
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-11-25',
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })
  return (await fetch(url, { method: 'POST', headers, body })).status
}

const BIN = path.join(import.meta.dirname, '../bin/toolgate.js')

describe('bin/toolgate.js', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, args, { encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } })

  it('runs the command', () => {
    const { status, stdout } = run('--conditions=toolgate-source', BIN, '--version')
    assert.equal(status, 0)
    assert.match(stdout, /^\d+\.\d+\.\d+/)
  })

  const tell = `import { registerHooks } from 'node:module'
registerHooks({ load(url, context, next) { console.error('loaded ' + url); return next(url, context) } })`
  const hooks = `data:text/javascript,${encodeURIComponent(tell)}`

  /** Returns the files that an argument loads. */
  function loadedBy(argument: string): readonly string[] {
    const { status, stderr } = run('--conditions=toolgate-source', '--import', hooks, BIN, argument)
    assert.equal(status, 0)
    return [...stderr.matchAll(/^loaded file:.*\/(?:packages|node_modules)\/(.*)$/gm)].map(([, file = '']) => file)
  }

  it('loads nothing for its version', () => {
    assert.deepEqual(loadedBy('--version'), ['cli/bin/toolgate.js'])
    assert.equal(run(BIN, '--version').stdout, run('--conditions=toolgate-source', BIN, '-V').stdout)
  })

  it('loads no command and no package for its help', () => {
    const loaded = loadedBy('--help')
    assert.ok(loaded.includes('cli/src/program.ts'), 'what is loaded is seen')
    const others = loaded.filter((file) => !file.startsWith('cli/') && !file.startsWith('commander/'))
    assert.deepEqual(others, [
      'core/src/entry/words.ts',
      'core/src/ports/ports.ts',
      'core/src/ports/grants.ts',
      'core/src/tools/tool-id.ts',
      'values/src/errors.ts',
      'values/src/json/json-text.ts',
    ])
    assert.deepEqual(
      loaded.filter((file) => file.includes('/commands/')),
      [],
    )
  })

  it('loads no client, API or console for a gateway that answers MCP', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-bin-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const config = path.join(folder, 'toolgate.yaml')
    writeFileSync(
      config,
      'servers: {}\ncallers: [{ key: a-key-of-sixteen-characters, user: vera }]\npolicy: [{ allow: ["*"] }]\n',
    )
    const parts = `process.on('exit', () => console.error(process.moduleLoadList.map((one) => 'loaded ' + one).join('\\n')))`
    const imports = [hooks, `data:text/javascript,${encodeURIComponent(parts)}`].flatMap((url) => ['--import', url])
    const child = spawn(process.execPath, [
      '--conditions=toolgate-source',
      ...imports,
      BIN,
      'serve',
      '--config',
      config,
      '--port',
      '0',
    ])
    t.after(() => child.kill('SIGKILL'))
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    const said = await once(child.stdout, 'data')
    const url = /http:\/\/\S+\/mcp/.exec(String(said[0]))?.[0] ?? ''
    assert.equal(await statusOf(url), 200)
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'close'), [0, null])
    const packages = new Set(
      [...stderr.matchAll(/^loaded file:.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/gm)].map(([, name]) => name),
    )
    assert.ok(packages.has('yaml'), 'what is loaded is seen')
    for (const name of ['hono', '@hono/node-server', 'ws', 'undici', 'cli-table3']) assert.ok(!packages.has(name), name)
    // Node's own client of `fetch`: 13 MB.
    assert.match(stderr, /^loaded NativeModule http$/m)
    assert.doesNotMatch(stderr, /^loaded NativeModule (?:internal\/deps\/undici|http2|tls)/m)
  })

  it('passes the exit code on', () => {
    assert.equal(run('--conditions=toolgate-source', BIN, 'nonsense').status, 2)
  })

  it('names the Node version that it needs under an older one', () => {
    const older = 'data:text/javascript,Object.defineProperty(process, "versions", { value: { node: "22.17.9" } })'
    const { status, stderr } = run('--import', older, BIN)
    assert.equal(status, 2)
    assert.match(stderr, /^toolgate needs Node 22\.18 or later/)
  })

  it('ends without an error when its reader stops', () => {
    const script = `"${process.execPath}" --conditions=toolgate-source "${BIN}" --help | head -1; exit "\${PIPESTATUS[0]}"`
    const { status, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
    assert.deepEqual([status, stderr], [0, ''])
  })
})
