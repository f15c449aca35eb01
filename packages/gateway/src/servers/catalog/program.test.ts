import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { createProgramReader } from './program.ts'

describe('createProgramReader', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'program-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const put = (name: string, text: string) => {
    const file = path.join(folder, name)
    writeFileSync(file, text)
    chmodSync(file, 0o755)
    return file
  }

  it('has another hash when the file of the command was swapped, of the same size and through a link', async () => {
    const read = createProgramReader()
    symlinkSync(put('real', 'aaaa'), path.join(folder, 'server'))
    const server = { command: path.join(folder, 'server'), args: [] }
    const first = await read(server)
    assert.deepEqual(await read(server), first)
    assert.deepEqual(await createProgramReader()(server), first, 'after a restart')
    renameSync(put('next', 'bbbb'), path.join(folder, 'real'))
    assert.notEqual((await read(server)).command, first.command)
  })

  it('finds a bare name on the PATH of the child: another file that comes first is another program', async () => {
    const read = createProgramReader()
    const bin = path.join(folder, 'bin')
    mkdirSync(bin)
    put('bin/server', 'good')
    const server = { command: 'server', args: [], env: { PATH: `${folder}${path.delimiter}${bin}` } }
    const first = await read(server)
    assert.match(first.command ?? '', /^[0-9a-f]{64}$/)
    put('server', 'evil')
    assert.notEqual((await read(server)).command, first.command)
  })

  it('reads the first script of an interpreter, and not what comes after it', async () => {
    const read = createProgramReader()
    const server = { command: process.execPath, args: ['--no-warnings', 'main.js', 'data.json'], cwd: folder }
    put('main.js', 'one')
    put('data.json', '1')
    const first = await read(server)
    put('data.json', '2')
    assert.deepEqual(await read(server), first)
    put('main.js', 'two')
    const second = await read(server)
    assert.equal(second.command, first.command)
    assert.notEqual(second.script, first.script)
  })

  it('reads no script of a program that is none, of code or of a module', async () => {
    const read = createProgramReader()
    const own = put('server', 'own')
    put('data', 'x')
    assert.equal((await read({ command: own, args: ['data'], cwd: folder })).script, undefined)
    for (const option of ['-e', '-m', '-c'])
      assert.equal((await read({ command: 'node', args: [option, 'data'], cwd: folder })).script, undefined, option)
  })

  it('has no hash of what it cannot read', async () => {
    const read = createProgramReader()
    assert.deepEqual(await read({ command: path.join(folder, 'gone'), args: [] }), {
      command: undefined,
      script: undefined,
    })
    assert.deepEqual(await read({ args: [] }), { command: undefined, script: undefined })
  })
})
