import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { findTarget } from './client.ts'
import { announce } from './project/running-file.ts'

describe('findTarget', () => {
  it('tries the demo key on this machine only', () => {
    for (const url of ['http://127.0.0.1:8787', 'http://localhost:9000', 'http://[::1]:8787', 'http://127.8.9.10'])
      assert.equal(findTarget({ url }, {}).key, 'demo-console', url)
    for (const url of [
      'http://gateway.example',
      'http://127.0.0.1.example',
      'http://localhost.example',
      'http://10.0.0.1',
    ])
      assert.equal(findTarget({ url }, {}).key, undefined, url)
  })

  it('takes --key before TOOLGATE_KEY, and --url before TOOLGATE_URL', () => {
    const env = { TOOLGATE_KEY: 'from-env', TOOLGATE_URL: 'http://env.example/path' }
    const options = { key: 'from-option', url: 'http://option.example' }
    assert.deepEqual(pick(findTarget(options, env)), ['http://option.example', 'from-option'])
    assert.deepEqual(pick(findTarget({}, env)), ['http://env.example', 'from-env'])
    assert.deepEqual(pick(findTarget({}, {})), ['http://127.0.0.1:8787', 'demo-console'])
  })

  it('finds the gateway of a file that has a mistake now, or leaves the port to the machine', (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-target-'))
    const before = process.cwd()
    t.after(() => {
      process.chdir(before)
      rmSync(folder, { recursive: true })
    })
    process.chdir(folder)
    announce('toolgate.yaml', { url: 'http://127.0.0.1:9123', secret: Buffer.alloc(32) })
    for (const text of ['listen: { port: 9123 }\nfoo: 1\n', 'servers: {}\nlisten: { port: 0 }\n']) {
      writeFileSync('toolgate.yaml', text)
      assert.equal(findTarget({}, {}).url, 'http://127.0.0.1:9123', text)
    }
  })
})

function pick({ url, key }: { url: string; key: string | undefined }): unknown[] {
  return [url, key]
}
