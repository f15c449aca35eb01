import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { AgentCallBody, RestartedBody, WhyInputBody } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { FLEET_PROGRAMS, ownFleet } from './support/fleet.ts'
import { until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'

const OWN = join(import.meta.dirname, 'support/reload-server.js')
const VERA = { agent: 'agent-key-of-vera', console: 'console-key-of-vera' }

withBinaries(FLEET_PROGRAMS, (paths) => {
  describe('the console of any replica', () => {
    const fleet = ownFleet(paths, () => {
      const server = `command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(OWN)}]`
      return `
servers:
  work: { ${server}, per: shared }
  mine: { ${server}, per: user, listing: user }
callers:
  - { key: ${VERA.agent}, user: vera, roles: [operator] }
  - { key: ${VERA.console}, for: console, user: vera, roles: [operator] }
  - { key: ${KEYS.operator}, user: operator, roles: [operator] }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
  - { key: reader-key, for: console, user: operator }
audit: { store: postgres }
policy: [{ allow: ["*"], deny: ["mine:fail"] }]
`
    })
    type To = { readonly url: string }
    const at = (i: number) => fleet.gateways[i % fleet.gateways.length] as To
    const callOf = async (name: string, to: To) => {
      const { headers, body } = toMessage(MODERN, 'tools/call', { name, arguments: {} })
      const sent = { headers: { ...headers, authorization: `Bearer ${VERA.agent}` }, body: JSON.stringify(body) }
      return textOf((await send(`${to.url}/mcp`, sent)).json() as RpcAnswer)
    }
    const post = (path: string, body: object, to: To, key: string = VERA.console) =>
      fleet.http(path, { headers: { authorization: `Bearer ${key}` }, body }, to)
    const fromConsole = async (tool: string, to: To) => {
      const answer = await post('/api/tool/call', { tool, as: 'vera' }, to)
      assert.equal(answer.status, 200, answer.text)
      return answer.json() as AgentCallBody
    }
    const homes = () => fleet.postgres.run("SELECT key FROM toolgate.owners WHERE key LIKE 'home/%'")

    it('makes nobody a home by a dry run, nor by a call that the person may not make', async () => {
      for (const gateway of fleet.gateways) {
        await post('/api/why', { tool: 'work:pid', as: 'vera' }, gateway)
        assert.equal(
          (await post('/api/tool/call', { tool: 'mine:pid', as: 'vera' }, gateway, 'reader-key')).status,
          403,
        )
        assert.equal((await post('/api/tool/call', { tool: 'mine:pid', as: 'vera' }, gateway, 'no-key')).status, 401)
      }
      assert.deepEqual(await homes(), [])
    })

    it('makes a real call where the servers of its user are, and a dry run by the list that they have', async () => {
      const pid = await callOf('mine__pid', at(1))
      assert.match(pid, /^\d+$/)
      await until(async () => {
        const found = await Promise.all(
          fleet.gateways.map(async (gateway) => {
            const answer = await post('/api/why', { tool: 'mine:pid', as: 'vera', input: {} }, gateway)
            return answer.status === 200 && (answer.json() as WhyInputBody).outcome
          }),
        )
        return found.every((outcome) => outcome === 'allow')
      })
      for (const gateway of fleet.gateways) {
        assert.equal((await fromConsole('mine:pid', gateway)).text, pid)
        const denied = await post('/api/why', { tool: 'mine:fail', as: 'vera', input: {} }, gateway)
        assert.equal((denied.json() as WhyInputBody).outcome, 'deny')
        const other = await post('/api/why', { tool: 'mine:pid', as: 'operator', input: {} }, gateway)
        assert.equal(other.status, 404, other.text)
      }
      assert.equal((await homes()).length, 1)
    })

    it('takes a call with the cookie of a login at any of them, from a page of its own only', async () => {
      const login = await fleet.http(
        '/api/login',
        { headers: { cookie: '', origin: fleet.url }, body: { key: VERA.console } },
        at(0),
      )
      const [cookie = ''] = String(login.headers['set-cookie']).split(';')
      const body = { tool: 'mine:pid', as: 'vera' }
      const own = await fleet.http('/api/tool/call', { headers: { cookie, origin: fleet.url }, body }, at(2))
      assert.equal(own.status, 200, own.text)
      for (const origin of ['https://evil.example', undefined]) {
        const headers = { cookie, ...(origin !== undefined && { origin }) }
        const foreign = await fleet.http('/api/tool/call', { headers, body }, at(2))
        assert.deepEqual([foreign.status, foreign.text.includes('origin_forbidden')], [403, true], foreign.text)
      }
    })

    it('answers no page of another site, whichever replica would answer', async () => {
      const evil = { origin: 'https://evil.example' }
      const agent = { authorization: `Bearer ${VERA.agent}`, ...evil }
      const person = { authorization: `Bearer ${VERA.console}`, ...evil }
      const tool = 'mine:pid'
      const asked = [
        ['/api/list', { headers: agent }],
        ['/api/decide', { headers: agent, body: { tool } }],
        ['/api/call', { headers: agent, body: { tool } }],
        ['/api/tools?as=vera', { headers: person }],
        [`/api/tool?as=vera&tool=${tool}`, { headers: person }],
        [`/api/why?as=vera&tool=${tool}`, { headers: person }],
        ['/api/why', { headers: person, body: { tool, as: 'vera', input: {} } }],
        ['/api/tool/call', { headers: person, body: { tool, as: 'vera' } }],
      ] as const
      for (const gateway of fleet.gateways)
        for (const [path, request] of asked) {
          const { status, text } = await fleet.http(path, request, gateway)
          assert.deepEqual([path, status, text.includes('origin_forbidden')], [path, 403, true], text)
        }
    })

    it('restarts a server at every replica, in the instances of all users too, with one record', async () => {
      const own = await callOf('mine__pid', at(0))
      const pids = () => Promise.all(fleet.gateways.map((gateway) => callOf('work__pid', gateway)))
      const before = await pids()
      assert.equal(new Set(before).size, fleet.gateways.length)
      const ids = (await fleet.postgres.run('SELECT id FROM toolgate.replicas ORDER BY id')).map(({ id }) => ({ id }))
      for (const server of ['work', 'mine']) {
        const answer = await post(`/api/servers/${server}/restart`, {}, at(1))
        assert.equal(answer.status, 200, answer.text)
        assert.deepEqual(answer.json() as RestartedBody, { server, replicas: ids })
      }
      await until(async () => (await pids()).every((pid) => /^\d+$/.test(pid) && !before.includes(pid)))
      await until(async () => {
        const pid = await callOf('mine__pid', at(2))
        return /^\d+$/.test(pid) && pid !== own
      })
      const records = await fleet.postgres.run(
        "SELECT record::jsonb->>'detail' AS detail FROM toolgate.audit WHERE record::jsonb->>'reason' = 'server_restarted' ORDER BY at",
      )
      assert.deepEqual(records, [{ detail: 'work' }, { detail: 'mine' }])
    })
  })
})
