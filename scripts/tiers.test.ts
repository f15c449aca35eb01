import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import fc from 'fast-check'

const ROOT = path.resolve(import.meta.dirname, '..')

function filesOf(...flags: string[]): readonly string[] {
  const { TOOLGATE_LONG: _, ...env } = process.env
  const script = path.join(import.meta.dirname, 'test.js')
  const list = execFileSync(process.execPath, [script, '--list', ...flags], { cwd: ROOT, env, encoding: 'utf8' })
  return list.trimEnd().split('\n')
}

describe('the tiers of tests', () => {
  const all = globSync('**/*.test.{ts,tsx,js,mjs}', {
    cwd: ROOT,
    exclude: (name) => name === 'node_modules' || name === 'dist',
  }).toSorted()
  const first = filesOf()
  const e2e = filesOf('--e2e')

  it('have every test file: in `npm test`, in `npm run test:e2e`, or, where it is long, in `npm run test:long`', () => {
    const tiers = new Set([...first, ...e2e, ...all.filter((file) => file.endsWith('.long.test.ts'))])
    assert.deepEqual([...tiers].toSorted(), all)
    assert.deepEqual(filesOf('--long').toSorted(), all)
    assert.deepEqual(filesOf('--all'), [...new Set([...first, ...e2e])].toSorted())
  })

  it('know the weights of files that there are', () => {
    const text = readFileSync(path.join(import.meta.dirname, 'test.js'), 'utf8')
    const weighed = [...text.matchAll(/^ {4}'(.*)': \d+,$/gm)].map(([, file]) => file ?? '')
    assert.ok(weighed.length > 0)
    assert.deepEqual(
      weighed.filter((file) => !first.includes(file) && !e2e.includes(file)),
      [],
    )
  })

  it('take the same examples each time, but for `npm run test:long`', () => {
    const { seed } = fc.readConfigureGlobal() ?? {}
    assert.equal(seed, process.env['TOOLGATE_LONG'] ? undefined : 1)
  })

  it('run the properties twice: a tenth of their runs first, then all of them', () => {
    const both = e2e.filter((file) => first.includes(file))
    const withRuns = all.filter(
      (file) => /\bruns(?:Of)?\(\d/.test(readFileSync(path.join(ROOT, file), 'utf8')) && !/\.(?:long|e2e)\./.test(file),
    )
    assert.ok(both.length > 20, `${both.length} files`)
    assert.deepEqual(both, withRuns)
  })
})
