import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { ApprovalComparisonBody, ApprovalsBody, PeopleBody, RunsBody, StartedRunBody } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { FLEET_PROGRAMS, ownFleet } from './support/fleet.ts'
import { until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'

const OWN = join(import.meta.dirname, 'support/reload-server.js')
const HOST = 'host-key-of-the-runner'

withBinaries(FLEET_PROGRAMS, (paths) => {
  describe('what people see at any replica of what others did', () => {
    const fleet = ownFleet(paths, () => {
      const server = `command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(OWN)}]`
      const compare = 'compare: { text: input.word, with: pid, input: {} }'
      const tools = `tools: { pid: { annotations: { readOnlyHint: true } }, echo: { ${compare} } }`
      return `
servers:
  work: { ${server}, per: shared, ${tools} }
  mine: { ${server}, per: user, listing: user, ${tools} }
callers:
  - { key: ${KEYS.viewer}, user: viewer }
  - { key: ${KEYS.operator}, user: operator }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
  - { key: reader-key, for: console, user: reader }
  - { key: ${HOST}, for: host, user: runner }
  - { key: key-of-user-0, user: user-0 }
  - { key: key-of-user-1, user: user-1 }
  - { key: key-of-user-2, user: user-2 }
audit: { store: postgres }
policy: [{ allow: ["*"], ask: ["work:echo", "mine:echo"] }]
`
    })
    type To = { readonly url: string }
    const at = (i: number) => fleet.gateways[i % fleet.gateways.length] as To
    const call = async (key: string, name: string, args: object, to: To) => {
      const { headers, body } = toMessage(MODERN, 'tools/call', { name, arguments: args })
      const sent = { headers: { ...headers, authorization: `Bearer ${key}` }, body: JSON.stringify(body) }
      return textOf((await send(`${to.url}/mcp`, sent)).json() as RpcAnswer)
    }
    const homes = () => fleet.postgres.run("SELECT key FROM toolgate.owners WHERE key LIKE 'home/%'")
    const waiting = async (tool: string) => {
      const { approvals } = (await fleet.http('/api/approvals?status=pending')).json() as ApprovalsBody
      return approvals.find((approval) => approval.tool === tool)?.id ?? ''
    }
    const compare = (id: string, to: To, key: string = KEYS.console) =>
      fleet.http(`/api/approvals/${id}/compare`, { method: 'POST', headers: { authorization: `Bearer ${key}` } }, to)

    it('is the same difference, read where the servers of the user are', async () => {
      const pid = await call(KEYS.viewer, 'mine__pid', {}, at(1))
      assert.match(pid, /^\d+$/)
      await call(KEYS.viewer, 'mine__echo', { word: 'new' }, at(2))
      const id = await waiting('mine:echo')
      for (const gateway of fleet.gateways) {
        assert.equal((await compare(id, gateway, 'reader-key')).status, 403)
        assert.equal((await compare(id, gateway, 'no-key')).status, 401)
        const answer = await compare(id, gateway)
        assert.equal(answer.status, 200, answer.text)
        const { atMs: _, ...shown } = answer.json() as ApprovalComparisonBody
        const named = { approval: id, reader: 'mine:pid', field: 'input.word' }
        assert.deepEqual(shown, { ...named, present: pid, proposed: 'new' })
      }
      assert.equal((await homes()).length, 1)
    })

    it('makes nobody a home where what is there is at a server of all', async () => {
      const before = await homes()
      await call(KEYS.operator, 'work__echo', { word: 'other' }, at(0))
      const id = await waiting('work:echo')
      const present = new Set<string | undefined>()
      for (const gateway of fleet.gateways) {
        const shown = (await compare(id, gateway)).json() as ApprovalComparisonBody
        assert.deepEqual([shown.notShown, shown.proposed], [undefined, 'other'])
        present.add(shown.present)
      }
      assert.equal(present.size, fleet.gateways.length, 'each has asked its own server')
      assert.deepEqual(await homes(), before)
    })

    it('are the runs and the callers of all', async () => {
      const started: StartedRunBody[] = []
      for (const [i, gateway] of fleet.gateways.entries()) {
        const headers = { authorization: `Bearer ${HOST}` }
        const answer = await fleet.http('/api/runs', { headers, body: { user: `user-${i}` } }, gateway)
        assert.equal(answer.status, 200, answer.text)
        const run = answer.json() as StartedRunBody
        started.push(run)
        assert.match(await call(run.token, 'work__pid', {}, at(i + 1)), /^\d+$/)
      }
      const ended = started[0]?.id ?? ''
      const end = { method: 'DELETE', headers: { authorization: `Bearer ${HOST}` } }
      assert.equal((await fleet.http(`/api/runs/${ended}`, end, at(1))).status, 200)
      for (const gateway of fleet.gateways) {
        const read = async <T extends { readonly isComplete: boolean }>(path: string) => {
          const ask = async () => (await fleet.http(path, {}, gateway)).json() as T
          let body = await ask()
          await until(async () => body.isComplete || (body = await ask()).isComplete)
          return body
        }
        const { runs } = await read<RunsBody>('/api/runs')
        const shown = started.map(({ id }) => runs.find((run) => run.id === id))
        assert.deepEqual(
          shown.map((run) => [run?.user, run?.state, run?.calls]),
          started.map(({ id }, i) => [`user-${i}`, id === ended ? 'ended' : 'open', 1]),
        )
        const { people } = await read<PeopleBody>('/api/people')
        const callsOf = (user: string) => people.find((person) => person.user === user)?.calls
        assert.deepEqual(
          started.map((_, i) => callsOf(`user-${i}`)),
          started.map(() => 1),
        )
        assert.equal(callsOf('viewer'), 2, 'what is read for a person is no call of the user')
      }
    })
  })
})
