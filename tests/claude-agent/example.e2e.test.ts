import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

describe('the example of the Claude Agent SDK', () => {
  it('prints what it says', async () => {
    const [program, output] = ['example.ts', 'example.txt'].map((file) => path.join(import.meta.dirname, file))
    const args = ['--conditions=toolgate-source', program as string]
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args)
    if (process.env['TOOLGATE_UPDATE']) writeFileSync(output as string, stdout)
    assert.equal(stderr, '')
    assert.equal(stdout, readFileSync(output as string, 'utf8'))
  })
})
