import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { type ModernServer, startModernServer } from '../packages/gateway/fixtures/modern-server.ts'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { KEYS, type Who } from './support/keys.ts'
import type { RpcAnswer } from './support/rpc.ts'
import { filesServer, httpServer } from './support/servers.ts'

type Result = NonNullable<RpcAnswer['result']>

const folder = tempFolder()
const workspace = join(folder.path, 'workspace')
let gateway: TestGateway
let modern: ModernServer

before(async () => {
  mkdirSync(workspace)
  writeFileSync(join(workspace, 'hello.txt'), 'Hello, größe 🙂.')
  modern = await startModernServer()
  gateway = await startTestGateway({
    servers: [filesServer(workspace), httpServer('modern', modern.url)],
    policy: [{ allow: [{ match: 'hint:read-only' }, { match: '*', when: "'admin' in caller.roles" }] }],
  })
})

after(async () => {
  await gateway?.close()
  await modern?.close()
  folder.remove()
})

describe("the Inspector's CLI", () => {
  const program = join(import.meta.dirname, '../node_modules/.bin/mcp-inspector')

  async function inspect(era: string, who: Who, ...args: string[]): Promise<Result> {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [
        program,
        '--cli',
        gateway.mcpUrl,
        '--transport',
        'http',
        '--protocol-era',
        era,
        '--header',
        `Authorization: Bearer ${KEYS[who]}`,
        ...args,
      ],
      { env: { PATH: process.env['PATH'], HOME: folder.path }, timeout: 30_000 },
    )
    return JSON.parse(stdout) as Result
  }

  for (const era of ['modern', 'auto', 'legacy']) {
    it(`lists and calls, era ${era}`, async () => {
      const [listed, called] = await Promise.all([
        inspect(era, 'viewer', '--method', 'tools/list'),
        inspect(
          era,
          'viewer',
          '--method',
          'tools/call',
          '--tool-name',
          'modern__add',
          '--tool-args-json',
          '{"a":20,"b":22}',
        ),
      ])
      const names = new Set((listed.tools ?? []).map(({ name }) => name))
      assert.ok(names.has('files__read_text_file') && !names.has('files__write_file'))
      assert.deepEqual(called.structuredContent, { sum: 42 })
    })
  }

  it('does not find a hidden tool', async () => {
    const call = inspect('modern', 'viewer', '--method', 'tools/call', '--tool-name', 'files__write_file')
    await assert.rejects(call, { code: 5 })
  })
})
