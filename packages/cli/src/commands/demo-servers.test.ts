import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { fakeIo } from '../testing/fake-io.ts'
import { installDemoServers } from './demo-servers.ts'

/** Returns a quickstart that needs one server, which npm could take from this disk. */
function quickstart(t: TestContext): string {
  const root = mkdtempSync(path.join(tmpdir(), 'toolgate-demo-'))
  t.after(() => rmSync(root, { recursive: true }))
  const folder = path.join(root, 'quickstart')
  mkdirSync(folder)
  writeFileSync(path.join(folder, 'package.json'), '{ "dependencies": { "demo": "1.0.0" } }')
  return folder
}

/** Writes a program that is called as npm is, and installs what it should, or fails. */
function npmThat(folder: string, does: string): Record<string, string> {
  const file = path.join(folder, '../npm-cli.js')
  writeFileSync(file, `const fs = require('node:fs')\n${does}`)
  return { npm_execpath: file }
}

const INSTALLS = `
  if (process.argv.slice(2).join(' ') !== 'install --ignore-scripts --no-audit --no-fund --loglevel=error') process.exit(9)
  fs.mkdirSync('node_modules/demo', { recursive: true })
  fs.writeFileSync('node_modules/demo/package.json', '{ "version": "1.0.0" }')`

describe('installDemoServers', () => {
  it('says what npm installs, and where, before it does, and does nothing the next time', async (t) => {
    const folder = quickstart(t)
    const first = fakeIo(npmThat(folder, INSTALLS))
    await installDemoServers(folder, first)
    assert.match(
      first.out(),
      /demo servers, which are not part of this package\. npm installs them now:\n {2}demo@1\.0\.0\n/,
    )
    assert.ok(first.out().includes(folder))
    const second = fakeIo(npmThat(folder, 'process.exit(1)'))
    await installDemoServers(folder, second)
    assert.equal(second.out(), '')
  })

  it('fails with what to do if npm fails, and shows what npm says', async (t) => {
    const folder = quickstart(t)
    const fake = fakeIo(npmThat(folder, `process.stderr.write('EACCES: not yours'); process.exit(243)`))
    await assert.rejects(installDemoServers(folder, fake), (error: Error & { hint?: string }) => {
      assert.match(error.message, /could not be installed: npm ended with exit code 243/)
      assert.ok(error.hint?.includes(`"npm install --ignore-scripts" in ${folder}`))
      return true
    })
    assert.match(fake.err(), /not yours/)
  })

  it('installs nothing in a clone, where the quickstart has no package.json', async (t) => {
    const folder = quickstart(t)
    rmSync(path.join(folder, 'package.json'))
    const fake = fakeIo(npmThat(folder, 'process.exit(1)'))
    await installDemoServers(folder, fake)
    assert.equal(fake.out(), '')
  })
})
