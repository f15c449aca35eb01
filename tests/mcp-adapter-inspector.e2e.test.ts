import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

const PROGRAM = join(import.meta.dirname, 'support/guarded-stdio.ts')
const INSPECTOR = join(import.meta.dirname, '../node_modules/.bin/mcp-inspector')

interface Result {
  readonly structuredContent?: unknown
  readonly tools?: readonly { readonly name: string }[]
}

describe("the Inspector's CLI and guarded servers on stdio", () => {
  async function inspect(sdk: string, role: string, ...args: string[]): Promise<Result> {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [INSPECTOR, '--cli', process.execPath, '--conditions=toolgate-source', PROGRAM, sdk, role, ...args],
      { env: { PATH: process.env['PATH'] }, timeout: 60_000 },
    )
    return JSON.parse(stdout) as Result
  }

  for (const sdk of ['v1', 'v2'])
    it(`lists and calls, SDK ${sdk}`, async () => {
      const { tools = [] } = await inspect(sdk, 'viewer', '--method', 'tools/list')
      assert.deepEqual(
        tools.map((tool) => tool.name),
        ['add', 'tighten'],
      )
      const args = ['--method', 'tools/call', '--tool-name', 'add', '--tool-args-json', '{"a":20,"b":22}']
      assert.deepEqual((await inspect(sdk, 'viewer', ...args)).structuredContent, { sum: 42 })
      // It lists first, and does not find it.
      await assert.rejects(inspect(sdk, 'viewer', '--method', 'tools/call', '--tool-name', 'delete_all'), { code: 5 })
    })
})
