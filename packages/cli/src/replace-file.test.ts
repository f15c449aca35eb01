import assert from 'node:assert/strict'
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { replaceFile, rewriteFile } from './replace-file.ts'

function setup(t: TestContext) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-replace-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const at = (name: string) => path.join(folder, name)
  writeFileSync(at('file'), 'old')
  return { at, names: () => readdirSync(folder).toSorted() }
}

describe('replaceFile', () => {
  it('never writes to the file that is there, so a kill leaves that whole', (t) => {
    const { at, names } = setup(t)
    linkSync(at('file'), at('same-bytes'))
    replaceFile(at('file'), 'new')
    assert.equal(readFileSync(at('same-bytes'), 'utf8'), 'old')
    assert.equal(readFileSync(at('file'), 'utf8'), 'new')
    assert.deepEqual(names(), ['file', 'same-bytes'])
  })

  it('is for its owner only, unless it is said otherwise', (t) => {
    const { at } = setup(t)
    replaceFile(at('file'), 'new')
    assert.equal(statSync(at('file')).mode & 0o777, 0o600)
    replaceFile(at('file'), 'new', 0o664)
    assert.equal(statSync(at('file')).mode & 0o777, 0o664)
  })

  it('replaces a link', (t) => {
    const { at } = setup(t)
    symlinkSync(at('file'), at('link'))
    replaceFile(at('link'), 'new')
    assert.equal(readFileSync(at('file'), 'utf8'), 'old')
  })

  it('leaves no draft where it fails', (t) => {
    const { at, names } = setup(t)
    mkdirSync(at('folder'))
    assert.throws(() => replaceFile(at('folder'), 'new'))
    assert.deepEqual(names(), ['file', 'folder'])
  })
})

describe('rewriteFile', () => {
  it('writes to the target of a link, with the mode that it has', (t) => {
    const { at, names } = setup(t)
    chmodSync(at('file'), 0o640)
    symlinkSync('file', at('inner'))
    symlinkSync('inner', at('link'))
    rewriteFile(at('link'), 'new')
    assert.equal(readFileSync(at('file'), 'utf8'), 'new')
    assert.equal(statSync(at('file')).mode & 0o777, 0o640)
    assert.ok(lstatSync(at('link')).isSymbolicLink())
    assert.deepEqual(names(), ['file', 'inner', 'link'])
  })

  it('makes nothing through a link whose target does not exist', (t) => {
    const { at, names } = setup(t)
    symlinkSync('nothing', at('link'))
    assert.throws(() => rewriteFile(at('link'), 'new'), { code: 'ENOENT' })
    assert.deepEqual(names(), ['file', 'link'])
  })
})
