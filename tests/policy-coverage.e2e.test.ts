import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadConfig, type PolicyBody, type WhyBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { nodeServer } from './support/servers.ts'

const SLOW = join(import.meta.dirname, 'support/slow-server.js')
const TEXT = `servers: {}
policy:
  - name: baseline
    allow: ["slow:*"]
    deny:
      - { match: "slow:long", unless: "'admin' in caller.roles" }
      - { match: "slow:wait", mode: shadow }
limits: []
`

describe('the policy of a running gateway', () => {
  const { policy, places, policySource } = loadConfig('toolgate.yaml', { text: TEXT, env: {} })
  let gateway: TestGateway
  before(async () => {
    gateway = await startTestGateway({
      servers: [nodeServer('slow', [SLOW])],
      groups: [],
      apps: [],
      callers: [...CALLERS, callerConfig('reader-key', { user: 'reader' }, 'console')],
      policy,
      ...(places && { places }),
      policySource,
    })
  })
  after(() => gateway.close())

  const call = (tool: string) =>
    gateway.api('/api/call', { key: KEYS.viewer, method: 'POST', body: { tool, input: {} } })
  const policyNow = async () => (await gateway.api('/api/policy')).body as PolicyBody

  it('has the hits of each clause, with its line', async () => {
    for (const tool of ['slow:echo', 'slow:long', 'slow:long', 'slow:wait']) await call(tool)
    const { text, file, line, clauses } = await policyNow()
    assert.deepEqual([file, line], ['toolgate.yaml', 2])
    assert.equal(text, TEXT.split('\n').slice(1, 7).join('\n'))
    assert.deepEqual(
      clauses.map(({ clause, place, hits, matchesTools, shadow }) => [clause, place?.line, hits, matchesTools, shadow]),
      [
        ['baseline#deny[0]', 6, 2, 1, undefined],
        ['baseline#deny[1]', 7, 1, 1, true],
        ['baseline#allow[0]', 4, 4, 4, undefined],
      ],
    )
  })

  it('is not shown as text to people who decide nothing', async () => {
    const { body } = await gateway.api('/api/policy', { key: 'reader-key' })
    assert.equal((body as PolicyBody).text, undefined)
    assert.equal((body as PolicyBody).clauses.length, 3)
  })

  it('explains a refusal with the place of its clause and its hits', async () => {
    const why = (await gateway.api('/api/why?tool=slow:long&as=viewer')).body as WhyBody
    const [reason] = why.reasons
    assert.deepEqual(reason?.place, { file: 'toolgate.yaml', line: 6, column: 9 })
    assert.equal(reason.hits, 2)
    assert.ok(why.answers.some(({ layer, outcome }) => layer === 'scopes' && outcome === 'allow'))
    const shadowed = (await gateway.api('/api/why?tool=slow:wait&as=viewer')).body as WhyBody
    assert.equal(shadowed.outcome, 'allow')
    assert.equal(shadowed.shadow?.reasons[0]?.place?.line, 7)
  })

  it('has the hits in the metrics', async () => {
    const { text } = await send(`${gateway.url}/metrics`, {
      method: 'GET',
      headers: { authorization: `Bearer ${KEYS.console}` },
    })
    assert.match(
      text,
      /toolgate_clause_hits_total\{clause="baseline#deny\[0\]",path="policy\[0\]\.deny\[0\]",shadow="false"\} 2/,
    )
  })
})
