import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { describe, it } from 'node:test'

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
    assert.deepEqual(others, ['core/src/entry/words.ts', 'core/src/ports/ports.ts'])
    assert.deepEqual(
      loaded.filter((file) => file.includes('/commands/')),
      [],
    )
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
