import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { PolicyBody, WhatIfBody, WhyBody } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { FLEET_PROGRAMS, ownFleet } from './support/fleet.ts'
import { until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { pick, randomFrom } from './support/random.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN } from './support/rpc.ts'

const TOOLS = ['read', 'write', 'pay', 'look']
const CALLS = 60

withBinaries(FLEET_PROGRAMS, (paths) => {
  describe('the clauses of replicas', () => {
    let work: RecordingServer
    const fleet = ownFleet(paths, async () => {
      work = await startRecordingServer(
        TOOLS.map((name) => ({ name })),
        { era: 'modern' },
      )
      return `
servers: { work: { url: "${work.url}", era: modern, per: shared } }
callers:
  - { key: ${KEYS.viewer}, user: viewer }
  - { key: ${KEYS.operator}, user: operator }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
audit: { store: postgres }
policy:
  - name: team
    allow: ["*"]
    deny:
      - { id: no-write, match: "work:write", unless: "caller.user == 'operator'" }
      - { id: no-pay, match: "work:pay", mode: shadow }
    ask:
      - { id: never, match: "work:read", when: "caller.user == 'nobody'" }
`
    })
    after(() => work?.close())

    const policyAt = async (to: { readonly url: string }) =>
      (await fleet.http('/api/policy', {}, to)).json() as PolicyBody
    const hitsAt = async (to: { readonly url: string }) =>
      Object.fromEntries((await policyAt(to)).clauses.map(({ clause, hits }) => [clause, hits]))
    const callSome = async (seed: number) => {
      const random = randomFrom(seed)
      for (let i = 0; i < CALLS; i++) {
        const gateway = pick(fleet.gateways, random())
        const who = pick(['viewer', 'operator'] as const, random())
        await fleet.ask(who, MODERN, 'tools/call', { name: `work__${pick(TOOLS, random())}`, arguments: {} }, gateway)
      }
    }
    /** What the records of all replicas say. */
    const recorded = async () => {
      const [row] = await fleet.postgres.run(`
        WITH ended AS (
          SELECT record::jsonb AS r FROM toolgate.audit WHERE event IN ('tool_result', 'tool_blocked'))
        SELECT count(*)::int AS "team#allow[0]",
          (count(*) FILTER (WHERE r->>'clause' = 'team#no-write'))::int AS "team#no-write",
          (count(*) FILTER (WHERE r->>'tool' = 'work:pay'))::int AS "team#no-pay", 0 AS "team#never" FROM ended`)
      return row
    }
    const sumsAreRecorded = (to: { readonly url: string }) =>
      until(async () => {
        const [wanted, found] = [await recorded(), await hitsAt(to)]
        return (
          JSON.stringify(Object.entries(wanted ?? {}).toSorted()) === JSON.stringify(Object.entries(found).toSorted())
        )
      })

    it('have held at every replica for as many calls as the records of all of them say', async () => {
      await callSome(1)
      for (const gateway of fleet.gateways) await sumsAreRecorded(gateway)
      assert.ok(((await recorded())?.['team#no-write'] as number) > 0)
    })

    it('go on counting after a replica was replaced, since the first of them began', async () => {
      const [gateway = { url: '' }] = fleet.gateways
      const before = (await policyAt(gateway)).clauses
      await fleet.replace(0)
      await callSome(2)
      for (const each of fleet.gateways) await sumsAreRecorded(each)
      const { clauses } = await policyAt(fleet.gateways[0] as { readonly url: string })
      assert.deepEqual(
        clauses.map(({ id, countedSince }) => [id, countedSince]),
        before.map(({ id, countedSince }) => [id, countedSince]),
      )
      assert.deepEqual(new Set([before.length]), new Set([clauses.length]))
    })

    it('are explained with the hits of all', async () => {
      const hits = (await recorded())?.['team#no-write']
      for (const gateway of fleet.gateways) {
        const why = (await fleet.http('/api/why?tool=work:write&as=viewer', {}, gateway)).json() as WhyBody
        assert.deepEqual([why.outcome, why.reasons[0]?.hits], ['deny', hits])
      }
    })

    it('are compared with those of a proposed text at every replica, over the calls of all', async () => {
      const calls = (await recorded())?.['team#allow[0]'] as number
      const body = { policy: 'policy: [{ name: team, deny: ["work:look"] }]' }
      for (const gateway of fleet.gateways) {
        const answer = await fleet.http('/api/what-if', { method: 'POST', body }, gateway)
        const found = answer.json() as WhatIfBody
        assert.equal(answer.status, 200, answer.text)
        assert.equal(found.calls, calls)
        assert.ok(found.changed > 0 && found.access.every(({ loses }) => loses.includes('work:look')))
      }
    })
  })
})
