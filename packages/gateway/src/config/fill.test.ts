import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { fillText } from './fill.ts'
import { loadConfig } from './load-config.ts'

function setup(t: TestContext) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-fill-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const filled: [string, string][] = []
  const fill = (text: string) =>
    fillText(text, {
      env: {},
      configDir: folder,
      keeps: new Set(),
      inCondition: false,
      onFilled: (name, value) => filled.push([name, value]),
    })
  return {
    folder,
    fill,
    filled,
    write: (name: string, text: string | Buffer) => writeFileSync(path.join(folder, name), text),
  }
}

describe('fillText with ${file:…}', () => {
  it('reads a secret from a file, relative to the configuration or absolute, without its last line feed', (t) => {
    const { fill, folder, filled, write } = setup(t)
    write('token', 's3cret-s3cret\n')
    assert.equal(fill('Bearer ${file:token}').text, 'Bearer s3cret-s3cret')
    assert.equal(fill(`\${file:${path.join(folder, 'token')}}`).text, 's3cret-s3cret')
    assert.deepEqual(filled[0], ['file:token', 's3cret-s3cret'])
    write('token', 'rotated-rotated')
    assert.equal(fill('${file:token}').text, 'rotated-rotated')
  })

  it('names the file and never its text, where it cannot be used', (t) => {
    const { fill, folder, write } = setup(t)
    write('empty', '\n')
    write('large', 'x'.repeat(65_537))
    write('binary', Buffer.from([0xff, 0xfe, 0x73]))
    mkdirSync(path.join(folder, 'folder'))
    for (const [name, problem] of [
      ['nothing', 'cannot be read: there is no such file'],
      ['empty', 'is empty'],
      ['large', 'has more than 65536 bytes'],
      ['binary', 'is not text'],
      ['folder', 'is not a file'],
    ] as const)
      assert.deepEqual(
        fill(`\${file:${name}}`).problems.map(({ message }) => message),
        [`the secret file ${path.join(folder, name)} ${problem}`],
      )
  })

  it('is a secret of the configuration, and a problem has its line and column', (t) => {
    const { folder, write } = setup(t)
    write('key', 'secret-of-vera\n')
    const file = path.join(folder, 'toolgate.yaml')
    const text = (name: string) =>
      `servers: {}\ncallers:\n  - { key: "\${file:${name}}", user: vera }\npolicy: [{ allow: ["*"] }]\n`
    writeFileSync(file, text('key'))
    assert.ok(loadConfig(file, { env: {} }).secrets?.includes('secret-of-vera'))
    writeFileSync(file, text('kex'))
    assert.throws(() => loadConfig(file, { env: {} }), /toolgate\.yaml:3:\d+: callers\[0\]\.key: the secret file .*kex/)
  })
})
