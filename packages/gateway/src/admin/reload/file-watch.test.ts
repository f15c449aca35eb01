import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { FileWatch } from './file-watch.ts'

const NEVER_MS = 2_000_000_000

async function setup(t: TestContext, prepare: (folder: string) => string) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-watch-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = prepare(folder)
  let calls = 0
  const watch = new FileWatch(file, async () => void calls++)
  await watch.start(NEVER_MS)
  t.after(() => watch.close())
  /** Looks so often, and returns how often it called back. */
  const look = async (times: number) => {
    const before = calls
    for (let i = 0; i < times; i++) await watch.look()
    return calls - before
  }
  return { folder, file, look }
}

function plain(folder: string): string {
  const file = path.join(folder, 'toolgate.yaml')
  writeFileSync(file, 'one')
  return file
}

describe('FileWatch', () => {
  it('calls back once for a text that has stayed for two looks', async (t) => {
    const { file, look } = await setup(t, plain)
    assert.equal(await look(3), 0)
    writeFileSync(file, 'two')
    assert.equal(await look(1), 0)
    assert.equal(await look(1), 1)
    assert.equal(await look(3), 0)
  })

  it('waits while a file is written in parts', async (t) => {
    const { file, look } = await setup(t, plain)
    for (const text of ['', 't', 'tw', 'two']) {
      writeFileSync(file, text)
      assert.equal(await look(1), 0, text)
    }
    assert.equal(await look(2), 1)
  })

  it('sees a file that is renamed into place, and one that is gone for a moment', async (t) => {
    const { folder, file, look } = await setup(t, plain)
    writeFileSync(path.join(folder, 'new'), 'two')
    renameSync(path.join(folder, 'new'), file)
    assert.equal(await look(2), 1)
    renameSync(file, path.join(folder, 'backup'))
    assert.equal(await look(1), 0)
    renameSync(path.join(folder, 'backup'), file)
    assert.equal(await look(3), 0)
  })

  it('sees the folder of links that Kubernetes swaps', async (t) => {
    const { folder, look } = await setup(t, (at) => {
      for (const [version, text] of [
        ['v1', 'one'],
        ['v2', 'two'],
      ] as const) {
        mkdirSync(path.join(at, version))
        writeFileSync(path.join(at, version, 'toolgate.yaml'), text)
      }
      symlinkSync('v1', path.join(at, '..data'))
      symlinkSync('..data/toolgate.yaml', path.join(at, 'toolgate.yaml'))
      return path.join(at, 'toolgate.yaml')
    })
    symlinkSync('v2', path.join(folder, '..next'))
    renameSync(path.join(folder, '..next'), path.join(folder, '..data'))
    assert.equal(await look(2), 1)
  })

  it('does not count a file that is written again with the same text', async (t) => {
    const { file, look } = await setup(t, plain)
    writeFileSync(file, 'one')
    assert.equal(await look(3), 0)
  })
})
