import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { GatewayConfig } from '@toolgate/gateway'
import { withOtherNames } from '../packages/gateway/src/config/other-names.ts'
import { startIssuer } from '../packages/gateway/src/testing/oauth.ts'
import { startTestGateway, until } from './support/gateway.ts'
import { callerConfig } from './support/keys.ts'
import { startRecordingServer } from './support/recording-server.ts'
import { MODERN } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Nobody approves a call of their own, under any name that the gateway knows of them. */

const ROLES = ['approver', 'operator']

/** A gateway where "users" of the console's login names subject 7 "ada", and that of the tokens names nobody. */
async function setup(t: TestContext) {
  const issuer = await startIssuer(t, { audiences: ['agents'] })
  const server = await startRecordingServer([{ name: 'send' }])
  const oidcServer = { ...issuer.config, users: new Map([['7', 'ada']]) }
  const given = {
    oauth: { issuers: [issuer.config], scopes: [], stepUp: [] },
    oidc: { server: oidcServer, clientId: 'console', scopes: ['openid'], roles: new Map([['admins', ROLES]]) },
    callers: [
      callerConfig('ada-key', { user: 'ada', roles: ROLES }, 'console'),
      callerConfig('bob-key', { user: 'bob', roles: ROLES }, 'console'),
      callerConfig('ada-agent', { user: 'ada' }),
      callerConfig('robot-agent', { user: 'robot' }),
      callerConfig('host-of-7', { user: `${issuer.config.name}/7` }, 'host'),
    ],
  }
  const callers: GatewayConfig['callers'] = withOtherNames(given)
  const gateway = await startTestGateway({
    ...given,
    callers,
    servers: [httpServer('pay', server.url)],
    policy: [{ ask: [{ match: 'pay:send', by: 'other' }] }],
    publicUrl: 'https://tools.example.com',
  })
  t.after(async () => {
    await gateway.close()
    await server.close()
  })
  let n = 0
  const call = async (key: string) => {
    const input = { n: ++n }
    const headers = { authorization: `Bearer ${key}` }
    await gateway.ask('viewer', MODERN, 'tools/call', { name: 'pay__send', arguments: input }, { headers })
    const pending = await gateway.gate.approvals.list({ status: 'pending' })
    return pending.find((one) => (one.input as typeof input).n === n)?.id ?? ''
  }
  const approve = async (key: string, id: string) => {
    const body = { decision: 'approve' }
    const answer = await gateway.api(`/api/approvals/${id}`, { method: 'POST', key, body })
    return answer.status === 200 ? 'approved' : (answer.body as { error: { code: string } }).error.code
  }
  const nowS = Math.floor(Date.now() / 1000)
  const sign = (claims: object) => issuer.sign({ aud: 'agents', iat: nowS, exp: nowS + 600, ...claims })
  return { sign, gateway, call, approve }
}

describe('another person', () => {
  it('is not the subject of the token by its name in "users", nor the other way round', async (t) => {
    const { sign, call, approve } = await setup(t)
    const token = await sign({ sub: '7' })
    const id = await call(token)
    assert.equal(await approve('ada-key', id), 'approval_needs_other')
    assert.equal(await approve('bob-key', id), 'approved')
    const other = await call(await sign({ sub: '8' }))
    assert.equal(await approve('ada-key', other), 'approved')
  })

  it('is not the actor of the token by that name', async (t) => {
    const { sign, call, approve } = await setup(t)
    const id = await call(await sign({ sub: '9', act: { sub: '7' } }))
    assert.equal(await approve('ada-key', id), 'approval_needs_other')
    assert.equal(await approve('bob-key', id), 'approved')
  })

  it('is not the maker of the key, nor the host of the run, by that name', async (t) => {
    const { gateway, call, approve } = await setup(t)
    const made = await gateway.api('/api/keys', { method: 'POST', key: 'ada-key', body: { for: 'mcp', user: 'robot' } })
    const ofKey = await call((made.body as { key: string }).key)
    assert.equal(await approve('ada-key', ofKey), 'approval_needs_other')
    const run = await gateway.api('/api/runs', { method: 'POST', key: 'host-of-7', body: { user: 'robot' } })
    const ofRun = await call((run.body as { token: string }).token)
    assert.equal(await approve('ada-key', ofRun), 'approval_needs_other')
    for (const id of [ofKey, ofRun]) assert.equal(await approve('bob-key', id), 'approved')
  })

  it('is not the same user with another key, and each refusal is recorded', async (t) => {
    const { gateway, call, approve } = await setup(t)
    const id = await call('ada-agent')
    assert.equal(await approve('ada-key', id), 'approval_needs_other')
    await until(async () => {
      const { body } = await gateway.api('/api/audit?event=approval_refused', { key: 'bob-key' })
      const [record] = (body as { records: readonly Readonly<Record<string, unknown>>[] }).records
      return record?.['user_id'] === 'ada' && record['approval_id'] === id
    })
  })
})
