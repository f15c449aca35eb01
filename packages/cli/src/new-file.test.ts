import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { writeChanges } from './clients/text-file.ts'
import { firstTestCommand } from './commands/first-test.ts'
import { initCommand } from './commands/init.ts'
import { createFile, isTaken, writeOutput } from './new-file.ts'
import { checkConfig, openConfig } from './project/config-file.ts'
import { fakeIo } from './testing/fake-io.ts'

const CONFIG = 'servers: {}\npolicy: [{ allow: ["*"] }]\n'

/** A folder with `link`, whose target in another folder does not exist. */
function setup(t: TestContext, link = 'link') {
  const base = mkdtempSync(path.join(tmpdir(), 'toolgate-new-file-'))
  t.after(() => rmSync(base, { recursive: true }))
  const [folder, outside] = [path.join(base, 'project'), path.join(base, 'outside')]
  for (const one of [folder, outside]) mkdirSync(one)
  const at = (name: string) => path.join(folder, name)
  const target = path.join(outside, 'target')
  mkdirSync(path.dirname(at(link)), { recursive: true })
  symlinkSync(target, at(link))
  const refusal = {
    exit: 'usage',
    message: `${at(link)} is a link to ${target}, which does not exist. Nothing was changed.`,
  }
  return { folder, at, target, refusal, names: () => readdirSync(folder).toSorted() }
}

describe('a file that a command makes', () => {
  it('is found where it is taken, also by a link to a file', (t) => {
    const { at, target, refusal } = setup(t)
    assert.throws(() => isTaken(at('link')), refusal)
    assert.equal(isTaken(at('none')), false)
    writeFileSync(target, 'theirs')
    assert.equal(isTaken(at('link')), true)
  })

  it('is never made through a link', (t) => {
    const { at, target, refusal } = setup(t)
    assert.throws(() => createFile(at('link'), 'ours'), {
      exit: 'no',
      message: `${at('link')} cannot be written (EEXIST).`,
    })
    assert.throws(() => writeOutput(at('link'), 'ours'), refusal)
    assert.equal(existsSync(target), false)
  })

  it('overwrites a file that a person named, even through a link', (t) => {
    const { at, target } = setup(t)
    writeFileSync(target, 'a longer text than ours')
    writeOutput(at('link'), 'ours')
    assert.equal(readFileSync(target, 'utf8'), 'ours')
    writeOutput(at('new'), 'ours')
    assert.equal(readFileSync(at('new'), 'utf8'), 'ours')
  })
})

describe('a link whose target does not exist', () => {
  for (const name of ['toolgate.yaml', '.toolgate/keys.json'])
    it(`stops toolgate init: ${name}`, async (t) => {
      const { folder, target, refusal, names } = setup(t, name)
      const before = names()
      await assert.rejects(initCommand(folder, {}, fakeIo()), refusal)
      assert.equal(existsSync(target), false)
      assert.deepEqual(names(), before)
    })

  for (const name of ['policy.test.yaml', 'catalog.json'])
    it(`stops toolgate test --init: ${name}`, async (t) => {
      const { at, target, refusal } = setup(t, name)
      writeFileSync(at('toolgate.yaml'), CONFIG)
      const start = () => Promise.reject(new Error('nothing starts'))
      await assert.rejects(firstTestCommand({ config: at('toolgate.yaml') }, { io: fakeIo(), start }), refusal)
      assert.equal(existsSync(target), false)
    })

  it("stops a change of a client's file", (t) => {
    const { at, target, refusal } = setup(t)
    assert.throws(() => writeChanges([{ file: at('link'), before: undefined, after: '{}' }]), refusal)
    assert.equal(existsSync(target), false)
  })

  it('is removed where it has the name of a draft', async (t) => {
    const { at, target } = setup(t, `.toolgate.yaml.${process.pid}.tmp`)
    writeFileSync(at('toolgate.yaml'), CONFIG)
    await checkConfig(openConfig(at('toolgate.yaml')), {}, { starts: false })
    assert.equal(existsSync(target), false)
  })
})
