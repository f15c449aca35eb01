import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'

describe('scripts/prepare.js', () => {
  const root = mkdtempSync(path.join(tmpdir(), 'toolgate-prepare-'))
  const at = (...parts: string[]): string => path.join(root, ...parts)
  after(() => rmSync(root, { recursive: true }))

  const prepare = async (...args: string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)(process.execPath, [at('scripts/prepare.js'), ...args])
    return stdout
  }

  before(() => {
    for (const folder of ['scripts', 'dependency', 'tester']) mkdirSync(at(folder))
    copyFileSync(path.join(import.meta.dirname, 'prepare.js'), at('scripts/prepare.js'))
    writeFileSync(at('dependency/package.json'), '{ "name": "dependency", "version": "1.0.0" }')
    writeFileSync(at('tester/package.json'), '{ "name": "tester", "version": "1.0.0" }')
    // All from this disk, so that no registry is asked.
    writeFileSync(
      at('package.json'),
      `{ "name": "clone", "version": "1.0.0", "type": "module", "dependencies": { "dependency": "file:./dependency" },
         "devDependencies": { "tester": "file:./tester" } }`,
    )
    execFileSync('npm', ['install', '--package-lock-only', '--no-audit', '--no-fund'], { cwd: root, stdio: 'pipe' })
  })

  it('installs nothing with --no-install', async () => {
    assert.equal(await prepare('--no-install'), '')
    assert.ok(!existsSync(at('node_modules')))
  })

  it('installs in a fresh clone, and says nothing when there is nothing to do', async () => {
    assert.match(await prepare(), /Installing what package-lock\.json names/)
    assert.ok(existsSync(at('node_modules/dependency/package.json')))
    assert.equal(await prepare(), '')
  })

  it('installs what tests need when it is asked to, and keeps it', async () => {
    assert.ok(!existsSync(at('node_modules/tester')))
    assert.match(await prepare('--dev'), /Installing/)
    assert.ok(existsSync(at('node_modules/tester/package.json')))
    for (const args of [['--dev'], []]) assert.equal(await prepare(...args), '')
    assert.ok(existsSync(at('node_modules/tester/package.json')))
  })

  it('looks at what the lock file says, not at when it was written', async () => {
    const later = new Date(Date.now() + 3_600_000)
    utimesSync(at('package-lock.json'), later, later)
    assert.equal(await prepare(), '')
  })

  it('installs once when several start at the same time', async () => {
    rmSync(at('node_modules'), { recursive: true })
    const said = await Promise.all([prepare(), prepare(), prepare()])
    assert.equal(said.filter((text) => text.includes('Installing')).length, 1)
    assert.ok(existsSync(at('node_modules/dependency/package.json')))
  })

  it('says how far it is while an installation takes long', async () => {
    rmSync(at('node_modules'), { recursive: true })
    mkdirSync(at('slow'))
    const npm = 'setTimeout(() => {}, 1500); require("node:fs").mkdirSync("node_modules", { recursive: true })'
    writeFileSync(at('slow/npm'), `#!/bin/sh\nexec ${process.execPath} -e '${npm}'\n`, { mode: 0o755 })
    const env = { ...process.env, PATH: `${at('slow')}:${process.env['PATH']}`, TOOLGATE_PROGRESS_MS: '100' }
    const { stdout } = await promisify(execFile)(process.execPath, [at('scripts/prepare.js')], { env })
    assert.match(stdout, /Installing .*\n(?: {2}… 0 of 2 packages, \d s\n)+/)
  })

  it('goes on after one that was killed', async () => {
    rmSync(at('node_modules'), { recursive: true })
    mkdirSync(at('.toolgate/prepare.lock'), { recursive: true })
    // Above the largest process id of any system.
    writeFileSync(at('.toolgate/prepare.lock/pid'), '2147483647')
    assert.match(await prepare(), /Installing/)
    assert.ok(!existsSync(at('.toolgate/prepare.lock')))
  })

  it('builds the console when its sources change, and keeps the earlier one when the build fails', async () => {
    for (const folder of ['packages/console/src', 'packages/gateway', 'node_modules/vite/bin', 'node_modules/.bin'])
      mkdirSync(at(folder), { recursive: true })
    writeFileSync(at('packages/console/index.html'), '<p>one</p>')
    writeFileSync(at('node_modules/.bin/node'), `#!/bin/sh\nexec ${process.execPath} "$@"\n`, { mode: 0o755 })
    writeFileSync(
      at('node_modules/vite/bin/vite.js'),
      `import fs from 'node:fs'
       const out = process.argv[process.argv.indexOf('--outDir') + 1]
       fs.mkdirSync(out, { recursive: true })
       const html = fs.readFileSync('index.html', 'utf8')
       if (html.includes('broken')) process.exit(1)
       fs.writeFileSync(out + '/index.html', html)`,
    )
    assert.match(await prepare('--console'), /Building the web console/)
    assert.equal(await prepare('--console'), '')
    writeFileSync(at('packages/console/index.html'), '<p>broken</p>')
    await assert.rejects(prepare('--console'), /ended with exit code 1/)
    assert.ok(existsSync(at('packages/gateway/console/index.html')))
    writeFileSync(at('packages/console/index.html'), '<p>two</p>')
    assert.match(await prepare('--console'), /Building/)
  })
})
