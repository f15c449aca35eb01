import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'

describe('scripts/test.js', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-runner-'))
  after(() => rmSync(folder, { recursive: true }))

  const run = (...files: [name: string, text: string][]): { status: number | null; totals: string | undefined } => {
    const names = files.map(([name, text]) => {
      writeFileSync(path.join(folder, name), `import { describe, it } from 'node:test'\n${text}`)
      return path.join(folder, name)
    })
    // A test runner inside a test runner reports to it, unless it does not know.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const script = path.join(import.meta.dirname, 'test.js')
    const { status, stdout } = spawnSync(process.execPath, [script, ...names], { encoding: 'utf8', env })
    return { status, totals: stdout.trimEnd().split('\n').at(-1) }
  }

  it('counts the tests, suites aside, and ends with the totals', () => {
    const files: [string, string][] = [
      ['a.test.ts', "describe('a', () => { it('one', () => {}); it('two', () => {}) })"],
      ['b.e2e.test.ts', "it('three', () => {})"],
    ]
    assert.deepEqual(run(...files), { status: 0, totals: '3 passed, 0 failed' })
  })

  it('fails when a test fails or is skipped', () => {
    const text =
      "describe('a', () => { it('one', () => {}); it('two', () => { throw new Error('no') }); it.skip('three') })"
    assert.deepEqual(run(['c.test.ts', text]), { status: 1, totals: '1 passed, 2 failed' })
  })

  it('fails when the process ends before its tests do', () => {
    const text = "it('one', () => {}); it('two', () => { process.exit(0) })"
    assert.deepEqual(run(['d.e2e.test.ts', text]).status, 1)
  })

  it('fails, and ends, when a test leaves a program running that holds the output', () => {
    // It ends when nobody reads its output any more.
    const program = "setInterval(() => console.log(''), 100); setTimeout(() => process.exit(), 30_000)"
    const text = `import { spawn } from 'node:child_process'
      it('one', () => spawn(process.execPath, ['-e', ${JSON.stringify(program)}], { stdio: 'inherit' }).unref())`
    assert.deepEqual(run(['f.e2e.test.ts', text]), { status: 1, totals: '1 passed, 1 failed' })
  })

  it('fails when no test ran, or a named file is not there', () => {
    assert.deepEqual(run(['e.test.ts', '']), { status: 1, totals: '0 passed, 0 failed' })
    assert.equal(spawnSync(process.execPath, [path.join(import.meta.dirname, 'test.js'), 'none.test.ts']).status, 2)
  })
})
