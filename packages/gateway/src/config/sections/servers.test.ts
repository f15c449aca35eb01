import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { findPackageBin } from './servers.ts'

describe('findPackageBin', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-bin-'))
  after(() => rmSync(folder, { recursive: true }))
  const from = [path.join(folder, 'toolgate.yaml')]

  const install = (name: string, bin?: unknown): string => {
    const home = path.join(folder, 'node_modules', name)
    mkdirSync(home, { recursive: true })
    // `exports` without package.json, as many packages have it.
    writeFileSync(path.join(home, 'package.json'), JSON.stringify({ name, exports: './index.js', bin }))
    return home
  }

  it('finds the only command of a package, whatever its name and exports', () => {
    const home = install('@scope/server', { 'mcp-server': 'dist/index.js' })
    assert.deepEqual(findPackageBin('@scope/server', undefined, from), { file: path.join(home, 'dist/index.js') })
  })

  it('finds a command that the package names after itself', () => {
    const home = install('@scope/itself', './cli.js')
    assert.deepEqual(findPackageBin('@scope/itself', undefined, from), { file: path.join(home, 'cli.js') })
    assert.deepEqual(findPackageBin('@scope/itself', 'itself', from), { file: path.join(home, 'cli.js') })
  })

  it('asks which, when there are several', () => {
    const home = install('two', { first: 'a.js', second: 'b.js' })
    assert.deepEqual(findPackageBin('two', 'second', from), { file: path.join(home, 'b.js') })
    assert.deepEqual(findPackageBin('two', undefined, from), {
      at: 'package',
      problem: 'the package "two" has several commands, choose one with "bin": first, second',
    })
    assert.deepEqual(findPackageBin('two', 'third', from), {
      at: 'bin',
      problem: 'found "third", expected a command of the package "two": first, second',
    })
  })

  it('names a package that has no command, and one that is not installed', () => {
    install('library')
    assert.deepEqual(findPackageBin('library', undefined, from), {
      at: 'package',
      problem: 'the package "library" has no command',
    })
    assert.deepEqual(findPackageBin('absent', undefined, from), {
      at: 'package',
      problem: 'the package "absent" is not installed; install it with npm beside the configuration',
    })
  })

  it('looks in every place it is given', () => {
    const home = install('elsewhere', 'x.js')
    assert.deepEqual(findPackageBin('elsewhere', undefined, ['/toolgate.yaml', ...from]), {
      file: path.join(home, 'x.js'),
    })
  })
})
