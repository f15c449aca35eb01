import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Tests that an example with packages of its own prints its `output.txt`, if it has one, and compiles with their types. */
export function describeExample(folder: string): void {
  describe(`the example ${path.basename(folder)}`, () => {
    const program = path.join(folder, 'main.ts')
    if (existsSync(program))
      it('prints its output.txt', async () => {
        const output = path.join(folder, 'output.txt')
        const args = ['--conditions=toolgate-source', program]
        const { stdout, stderr } = await promisify(execFile)(process.execPath, args)
        if (process.env['TOOLGATE_UPDATE']) writeFileSync(output, stdout)
        assert.equal(stderr, '')
        assert.equal(stdout, readFileSync(output, 'utf8'))
      })

    it('compiles with the types of its packages', async () => {
      const compiling = promisify(execFile)(path.join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], { cwd: ROOT })
      assert.equal(await compiling.then(({ stdout }) => stdout).catch((error: { stdout: string }) => error.stdout), '')
    })
  })
}
