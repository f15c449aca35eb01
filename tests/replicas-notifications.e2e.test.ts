import assert from 'node:assert/strict'
import { after, beforeEach, describe, it } from 'node:test'
import type { ApprovalsBody, NotificationsBody } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { FLEET_PROGRAMS, ownFleet } from './support/fleet.ts'
import { until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { type NoticeReceiver, startNoticeReceiver } from './support/notice-receiver.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, textOf } from './support/rpc.ts'

withBinaries(FLEET_PROGRAMS, (paths) => {
  describe('approvals of replicas', () => {
    let work: RecordingServer
    let receiver: NoticeReceiver
    const fleet = ownFleet(paths, async () => {
      const inputSchema = { type: 'object', properties: { n: { type: 'integer' } } }
      work = await startRecordingServer([{ name: 'pay', inputSchema }], { era: 'modern' })
      receiver = await startNoticeReceiver()
      return `
servers: { work: { url: "${work.url}", era: modern, per: shared } }
callers:
  - { key: ${KEYS.viewer}, user: viewer }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
audit: { store: postgres }
policy: [{ ask: ["work:pay"] }]
approvals: { wait: { ms: 30000 }, notify: [{ url: "${receiver.url}", format: json, name: ops }] }
`
    })
    after(async () => {
      await work?.close()
      await receiver?.close()
    })
    beforeEach(() => receiver.forget())

    const pay = (n: number, at: number) =>
      fleet.ask('viewer', MODERN, 'tools/call', { name: 'work__pay', arguments: { n } }, fleet.gateways[at])
    const typesOf = (n: string) =>
      receiver.got.filter(({ body }) => body.data?.['id'] === n).map(({ body }) => body.type)
    const pendingAt = async (at: number) => {
      const { approvals } = (
        await fleet.http('/api/approvals?status=pending', {}, fleet.gateways[at])
      ).json() as ApprovalsBody
      return approvals
    }
    const decide = (decision: 'approve' | 'reject', id: string, at: number) =>
      fleet.http(`/api/approvals/${id}`, { method: 'POST', body: { decision } }, fleet.gateways[at])

    it('are announced once, whichever replicas are asked, and end once', async () => {
      const calling = Promise.all([pay(1, 0), pay(1, 1), pay(1, 0), pay(1, 1)])
      const id = (await until(async () => (await pendingAt(0))[0]))?.id ?? ''
      await until(() => typesOf(id).length > 0)
      assert.equal((await decide('reject', id, 1)).status, 200)
      for (const answer of await calling) assert.match(textOf(answer), /a person rejected this call/)
      await until(() => typesOf(id).length > 1)
      await until(async () => {
        const rows = await Promise.all(
          fleet.gateways.map(
            async (to) => (await fleet.http('/api/notifications', {}, to)).json() as NotificationsBody,
          ),
        )
        return rows.every(({ receivers }) => receivers.every(({ waiting }) => waiting === 0))
      })
      assert.deepEqual(typesOf(id), ['approval.requested', 'approval.ended'])
    })

    it('are sent by another replica when the one that sends stops', async () => {
      receiver.answer = (response) => void response.writeHead(503).end()
      const calling = pay(2, 0)
      await until(() => receiver.got.length > 0)
      const [before] = receiver.got
      await fleet.replace(0)
      assert.match(textOf(await calling), /^Waiting for approval of work__pay\./)
      receiver.answer = (response) => void response.end('ok')
      const count = receiver.got.length
      await until(() => receiver.got.length > count)
      assert.equal(receiver.got.at(-1)?.headers['webhook-id'], before?.headers['webhook-id'])
    })

    it('let a call that one replica holds run when another one is told the decision', async () => {
      const ran = work.calls('pay').length
      const calling = pay(3, 0)
      const approval = await until(async () =>
        (await pendingAt(1)).find(({ input }) => JSON.stringify(input) === '{"n":3}'),
      )
      await decide('approve', approval?.id ?? '', 1)
      assert.equal(textOf(await calling), 'pay ran')
      assert.equal(work.calls('pay').length, ran + 1)
    })
  })
})
