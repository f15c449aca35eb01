import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

const ROOT = path.resolve(import.meta.dirname, '../..')

describe('the types of the Claude Agent SDK', () => {
  it('are those of what guard takes and gives, as these tests compile with them', async () => {
    const tsc = path.join(ROOT, 'node_modules/.bin/tsc')
    const compiling = promisify(execFile)(tsc, ['-p', import.meta.dirname], { cwd: ROOT })
    const output = await compiling.then(({ stdout }) => stdout).catch((error: { stdout: string }) => error.stdout)
    assert.equal(output, '')
  })
})
