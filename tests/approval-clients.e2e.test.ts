import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { startRecordingServer, type RecordingServer } from './support/recording-server.ts'
import type { RpcAnswer } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/**
 * The doors of approval that the Inspector's CLI uses: the text in the earlier era, a task in 2026-07-28. It declares no
 * elicitation. The doors of the SDKs are in `approval-doors`, the one of the Claude Agent SDK in `claude-agent`.
 */

type Result = NonNullable<RpcAnswer['result']>

const PROGRAM = join(import.meta.dirname, '../node_modules/.bin/mcp-inspector')
const folder = tempFolder()
let server: RecordingServer
let gateway: TestGateway

before(async () => {
  server = await startRecordingServer([
    { name: 'send', inputSchema: { type: 'object', properties: { cents: { type: 'number' } } } },
  ])
  gateway = await startTestGateway({ servers: [httpServer('pay', server.url)], policy: [{ ask: ['pay:send'] }] })
})
after(async () => {
  await gateway?.close()
  await server?.close()
  folder.remove()
})
beforeEach(() => server.forget())

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Calls the tool with a process of the Inspector's own, which ends with its answer. */
async function inspect(era: string, cents: number): Promise<Ended> {
  const target = ['--cli', gateway.mcpUrl, '--transport', 'http', '--protocol-era', era]
  const call = ['--method', 'tools/call', '--tool-name', 'pay__send', '--tool-args-json', JSON.stringify({ cents })]
  const args = [PROGRAM, ...target, '--header', `Authorization: Bearer ${KEYS.viewer}`, ...call]
  const env = { PATH: process.env['PATH'], HOME: folder.path }
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env, timeout: 50_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr })
    })
  })
}

const textOf = ({ stdout, stderr }: Ended): string => {
  assert.notEqual(stdout, '', stderr)
  return ((JSON.parse(stdout) as Result).content ?? []).map(({ text }) => text ?? '').join('\n')
}

const pending = () => gateway.gate.approvals.list({ status: 'pending' })

/** Waits until one call waits for a person, and decides it as the console does. */
async function decide(decision: 'approve' | 'reject', cents: number): Promise<void> {
  const asked = await until(async () => (await pending())[0], 50_000)
  assert.deepEqual([asked?.tool, asked?.input], ['pay:send', { cents }])
  const { status } = await gateway.api(`/api/approvals/${asked?.id}`, { method: 'POST', body: { decision } })
  assert.equal(status, 200)
}

const runs = () => server.calls('send').length
const WAITING =
  /^Waiting for approval of pay__send\. owner or somebody with the role approver can decide at http\S+\/approvals\/[\da-f-]{36}\.$/
/** The Inspector's exit code of a result that is an error. */
const IS_ERROR = 5

describe("the Inspector's CLI, at the door of text (2025-11-25)", () => {
  it('gets the text, runs once after the approval, and the next call asks again', async () => {
    const first = await inspect('legacy', 1)
    assert.equal(first.code, IS_ERROR)
    assert.match(textOf(first), WAITING)
    assert.equal(runs(), 0)
    await decide('approve', 1)
    const second = await inspect('legacy', 1)
    assert.deepEqual([second.code, textOf(second)], [0, 'send ran'])
    const third = await inspect('legacy', 1)
    assert.equal(third.code, IS_ERROR)
    assert.match(textOf(third), WAITING)
    assert.equal(runs(), 1)
    await decide('reject', 1)
  })

  it('gets the refusal when the person has rejected', async () => {
    await inspect('legacy', 2)
    await decide('reject', 2)
    const second = await inspect('legacy', 2)
    assert.equal(second.code, IS_ERROR)
    assert.match(textOf(second), /a person rejected this call/)
    assert.equal(runs(), 0)
  })
})

// A rejected input stays rejected for a while: each test has its own.
for (const [era, cents] of [
  ['modern', 3],
  ['auto', 4],
] as const)
  describe(`the Inspector's CLI, at the door of tasks (2026-07-28, era ${era})`, () => {
    it('waits for the person, its one call runs once, and the next call asks again', async () => {
      const calling = inspect(era, cents)
      await decide('approve', cents)
      const first = await calling
      assert.deepEqual([first.code, textOf(first)], [0, 'send ran'])
      const again = inspect(era, cents)
      await decide('reject', cents)
      const second = await again
      assert.equal(second.code, IS_ERROR)
      assert.match(textOf(second), /a person rejected this call/)
      assert.equal(runs(), 1)
    })
  })
