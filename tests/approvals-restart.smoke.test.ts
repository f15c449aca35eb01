import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import type { Approval } from '@toolgate/core'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, type RpcAnswer, textOf } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Approvals survive a restart: requested before it, given after it, used once. */

const folder = tempFolder()
let bank: RecordingServer
let gateway: TestGateway

async function start(): Promise<void> {
  gateway = await startTestGateway({
    servers: [httpServer('bank', bank.url)],
    policy: [{ ask: ['bank:pay'] }],
    state: { store: 'sqlite', path: join(folder.path, 'state.db') },
  })
}

before(async () => {
  bank = await startRecordingServer([{ name: 'pay' }])
})

afterEach(async () => {
  await gateway.close()
  bank.forget()
})

after(async () => {
  await bank.close()
  folder.remove()
})

const pay = (amount: number) => gateway.call('operator', MODERN, 'bank__pay', { amount })
const decide = (id: string, decision: 'approve' | 'reject', reason?: string) =>
  gateway.api(`/api/approvals/${id}`, { method: 'POST', body: { decision, ...(reason ? { reason } : {}) } })

function idOf(answer: RpcAnswer): string {
  assert.match(textOf(answer), /^Waiting for approval of bank__pay|^Waiting for approval/)
  const approval = answer.result?._meta?.['dev.toolgate/approval'] as { id: string } | undefined
  return approval?.id ?? ''
}

describe('a gateway with its state in SQLite', () => {
  it('runs a call once that was requested before a restart and approved after it', async () => {
    await start()
    const id = idOf(await pay(1))
    await gateway.close()
    await start()
    assert.equal((await decide(id, 'approve')).status, 200)
    await gateway.close()
    await start()
    assert.equal(textOf(await pay(1)), 'pay ran')
    assert.equal(bank.calls().length, 1)
    await gateway.close()
    await start()
    assert.notEqual(idOf(await pay(1)), id)
    assert.equal(bank.calls().length, 1)
    const { approvals } = (await gateway.api('/api/approvals')).body as { approvals: readonly Approval[] }
    assert.deepEqual(
      approvals.map(({ status }) => status),
      ['pending', 'consumed'],
    )
  })

  it('keeps a rejection after a restart', async () => {
    await start()
    const id = idOf(await pay(2))
    assert.equal((await decide(id, 'reject', 'too much')).status, 200)
    await gateway.close()
    await start()
    assert.match(textOf(await pay(2)), /too much/)
    assert.deepEqual(bank.calls(), [])
  })
})
