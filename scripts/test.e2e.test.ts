import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'

describe('scripts/test.js', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-runner-'))
  after(() => rmSync(folder, { recursive: true }))

  const runWith = (options: readonly string[], ...files: [name: string, text: string][]) => {
    const names = files.map(([name, text]) => {
      writeFileSync(path.join(folder, name), `import { describe, it } from 'node:test'\n${text}`)
      return path.join(folder, name)
    })
    // A test runner inside a test runner reports to it, unless it does not know.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const script = path.join(import.meta.dirname, 'test.js')
    const { status, stdout } = spawnSync(process.execPath, [script, ...options, ...names], { encoding: 'utf8', env })
    const lines = stdout.trimEnd().split('\n')
    return { status, totals: lines.at(-1), before: lines.at(-2) }
  }
  const run = (...files: [name: string, text: string][]) => {
    const { status, totals } = runWith([], ...files)
    return { status, totals }
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

  it('runs an end-to-end file that fails once more after the others, and names it as flaky if it passes then', () => {
    const marker = path.join(folder, 'ran')
    const text = `import { appendFileSync, readFileSync } from 'node:fs'
      it('one', () => {})
      it('two', () => {
        appendFileSync(${JSON.stringify(marker)}, process.pid + ' ')
        if (readFileSync(${JSON.stringify(marker)}, 'utf8').split(' ').length < 3) throw new Error('no')
      })`
    const { status, totals, before } = runWith(['--again'], ['g.e2e.test.ts', text], ['h.e2e.test.ts', "it('three')"])
    assert.deepEqual({ status, totals }, { status: 0, totals: '3 passed, 0 failed' })
    assert.match(before ?? '', /^flaky, passed when run again: \S*g\.e2e\.test\.ts$/)
  })

  it('fails when a file fails in both runs, or draws its own examples', () => {
    const text = "it('one', () => { throw new Error('no') })"
    assert.deepEqual(runWith(['--again'], ['i.e2e.test.ts', text]).totals, '0 passed, 1 failed')
    const once = `import { existsSync, writeFileSync } from 'node:fs'
      const marker = ${JSON.stringify(path.join(folder, 'once'))}
      it('one', () => { if (!existsSync(marker)) { writeFileSync(marker, ''); throw new Error('no') } })`
    assert.deepEqual(runWith(['--again'], ['j.test.ts', once]).totals, '0 passed, 1 failed')
  })

  it('fails when no test ran, or a named file is not there', () => {
    assert.deepEqual(run(['e.test.ts', '']), { status: 1, totals: '0 passed, 0 failed' })
    assert.equal(spawnSync(process.execPath, [path.join(import.meta.dirname, 'test.js'), 'none.test.ts']).status, 2)
  })
})
