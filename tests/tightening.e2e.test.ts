import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { Policy } from '@toolgate/core'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { type RecordedTool, type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { ERAS, MODERN, type RpcAnswer, textOf } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Tightening is immediate: a call that was listed, decided or approved runs only if it is still allowed. */

const TOOLS: readonly RecordedTool[] = [{ name: 'pay' }, { name: 'look' }, { name: 'browse' }]
const NO_PAY: Policy = { deny: ['bank:pay'] }
const folder = tempFolder()
let bank: RecordingServer
let web: Server
let webPort: number
let gateway: TestGateway

before(async () => {
  bank = await startRecordingServer(TOOLS)
  web = createServer((socket) => socket.destroy())
  webPort = await listen(web, 0)
  gateway = await startTestGateway({
    servers: [httpServer('bank', bank.url)],
    groups: [
      {
        name: 'web',
        tools: ['bank:browse'],
        visibility: 'conditional',
        dependsOn: [],
        availableWhen: [{ tcp: { host: '127.0.0.1', port: webPort } }],
        suggestion: 'Start the browser.',
      },
    ],
    // Each record is on disk before a call continues, which leaves time between deciding and executing.
    audit: { store: 'jsonl', path: join(folder.path, 'audit.jsonl'), mode: 'required' },
  })
})

after(async () => {
  await gateway?.close()
  await bank?.close()
  web?.close()
  folder.remove()
})

beforeEach(async () => {
  gateway.gate.setPolicy([])
  const isAsFirst = () => {
    const { size } = gateway.gate.catalog.snapshot()
    return size === TOOLS.length && gateway.gate.catalog.get('bank:pay')?.description !== 'Pays twice.'
  }
  // A server that announces a change at each reading is read more and more slowly.
  if (!isAsFirst()) bank.setTools(TOOLS)
  await until(isAsFirst)
  bank.forget()
})

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
}

const pay = (era: (typeof ERAS)[number] = MODERN, args: object = {}) => gateway.call('operator', era, 'bank__pay', args)

function assertNotPaid(answer: RpcAnswer, told: RegExp): void {
  assert.equal(answer.result?.isError, true, JSON.stringify(answer))
  assert.match(textOf(answer), told)
  assert.deepEqual(bank.calls(), [])
}

const approvalOf = (answer: RpcAnswer) => {
  const approval = answer.result?._meta?.['dev.toolgate/approval'] as { id: string } | undefined
  assert.ok(approval, JSON.stringify(answer))
  return approval.id
}
const approve = async (answer: RpcAnswer) => {
  const body = { decision: 'approve' }
  const { status } = await gateway.api(`/api/approvals/${approvalOf(answer)}`, { method: 'POST', body })
  assert.equal(status, 200)
}

describe('a policy that is tightened', () => {
  for (const era of ERAS)
    it(`between listing and calling applies to the call, in ${era}`, async () => {
      assert.ok((await gateway.list('operator', era)).includes('bank__pay'))
      gateway.gate.setPolicy(NO_PAY)
      assertNotPaid(await pay(era), /^Tool "bank__pay" is not available/)
      assert.ok(!(await gateway.list('operator', era)).includes('bank__pay'))
      gateway.gate.setPolicy([])
      assert.equal(textOf(await pay(era)), 'pay ran')
    })

  for (const era of ERAS)
    it(`between deciding and executing applies to the call, in ${era}`, async () => {
      let decided = 0
      const tightenLater = () => {
        decided++
        setImmediate(() => gateway.gate.setPolicy(NO_PAY))
        return false
      }
      gateway.gate.setPolicy({ deny: [{ match: 'bank:pay', input: tightenLater }] })
      assertNotPaid(await pay(era), /^Tool "bank__pay" is not available/)
      assert.ok(decided > 0)
    })

  it('while it is being evaluated applies to the call', async () => {
    const tightenNow = () => {
      gateway.gate.setPolicy(NO_PAY)
      return false
    }
    gateway.gate.setPolicy({ deny: [{ match: 'bank:pay', input: tightenNow }] })
    assertNotPaid(await pay(), /^Tool "bank__pay" is not available/)
  })

  it('to one that asks, after a call was decided, makes it wait or refuses it', async () => {
    const askLater = () => {
      setImmediate(() => gateway.gate.setPolicy({ ask: ['bank:pay'] }))
      return false
    }
    gateway.gate.setPolicy({ deny: [{ match: 'bank:pay', input: askLater }] })
    assertNotPaid(await pay(), /TOOL_CALL_BLOCKED|Waiting for approval/)
    assertNotPaid(
      await pay(),
      /^Waiting for approval of bank__pay\. \S+ or somebody with the role approver can decide at http/,
    )
  })

  it('before an approved call applies to it, and the approval is not consumed', async () => {
    gateway.gate.setPolicy({ ask: ['bank:pay'] })
    const input = { n: 1 }
    await approve(await pay(MODERN, input))
    gateway.gate.setPolicy([{ ask: ['bank:pay'] }, NO_PAY])
    assertNotPaid(await pay(MODERN, input), /is not available/)
    gateway.gate.setPolicy({ ask: ['bank:pay'] })
    assert.equal(textOf(await pay(MODERN, input)), 'pay ran')
    assert.equal(bank.calls('pay').length, 1)
  })

  it('while a call waits for the disk leaves one terminal record', async () => {
    const tightenLater = () => {
      setImmediate(() => gateway.gate.setPolicy(NO_PAY))
      return false
    }
    gateway.gate.setPolicy({ deny: [{ match: 'bank:pay', input: tightenLater }] })
    const newest = async () => {
      const { body } = await gateway.api('/api/audit?limit=10')
      return (body as { records: { seq: number; event: string; tool_call_id: string }[] }).records
    }
    const since = (await newest())[0]?.seq ?? 0
    assertNotPaid(await pay(), /is not available/)
    const events = (await newest())
      .filter(({ seq, tool_call_id: id }) => seq > since && id !== undefined)
      .map(({ event }) => event)
    assert.deepEqual(
      events.filter((event) => event !== 'tool_call'),
      ['tool_blocked'],
    )
  })
})

describe('a tool', () => {
  for (const era of ERAS)
    it(`that its server removes between listing and calling is unknown, in ${era}`, async () => {
      assert.ok((await gateway.list('operator', era)).includes('bank__pay'))
      bank.setTools(TOOLS.slice(1))
      await until(() => !gateway.gate.catalog.get('bank:pay'))
      assertNotPaid(await pay(era), /^Tool "bank__pay" is not available/)
    })

  it('that changed after a person approved its call needs a new approval', async () => {
    gateway.gate.setPolicy({ ask: ['bank:pay'] })
    const first = await pay(MODERN, { n: 2 })
    await approve(first)
    bank.setTools([{ name: 'pay', description: 'Pays twice.' }, ...TOOLS.slice(1)])
    await until(() => gateway.gate.catalog.get('bank:pay')?.description === 'Pays twice.')
    const second = await pay(MODERN, { n: 2 })
    assertNotPaid(second, /^Waiting for approval/)
    assert.notEqual(approvalOf(second), approvalOf(first))
  })
})

describe('a group whose dependency goes away', () => {
  it('removes its tools from the list, shows people why, refuses calls with the reason, and restores them', async () => {
    const listed = async () => (await gateway.list('viewer', MODERN)).includes('bank__browse')
    const row = async () => (await gateway.tools('viewer')).groups.find(({ name }) => name === 'web')
    assert.equal(await listed(), true)
    assert.equal((await row())?.available, true)

    await new Promise((resolve) => web.close(resolve))
    await until(async () => !(await listed()))
    const down = await row()
    assert.equal(down?.available, false)
    assert.match(down?.reason ?? '', new RegExp(`127\\.0\\.0\\.1:${webPort}`))
    assert.equal(down?.suggestion, 'Start the browser.')
    const tool = (await gateway.tools('viewer')).tools.find(({ id }) => id === 'bank:browse')
    assert.deepEqual([tool?.outcome, tool?.visible], ['wait', false])
    for (const era of ERAS) {
      const answer = await gateway.call('viewer', era, 'bank__browse')
      assert.match(textOf(answer), /^bank__browse is unavailable: .*127\.0\.0\.1.* Start the browser\.$/)
      assert.equal(answer.result?.isError, true)
    }
    assert.deepEqual(bank.calls(), [])

    // A caller to whom the tool is denied must not learn its group's state.
    gateway.gate.setPolicy({ deny: ['bank:browse'] })
    assert.match(textOf(await gateway.call('viewer', MODERN, 'bank__browse')), /^Tool "bank__browse" is not available/)
    gateway.gate.setPolicy([])

    await listen(web, webPort)
    await until(listed)
    assert.equal(textOf(await gateway.call('viewer', '2025-06-18', 'bank__browse')), 'browse ran')
  })
})
