import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { AuditBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { ERAS, type RpcAnswer, textOf } from './support/rpc.ts'
import { nodeServer } from './support/servers.ts'

const FIXTURE = path.join(import.meta.dirname, '../packages/gateway/fixtures/meta-stdio.js')
let gateway: TestGateway

before(async () => {
  gateway = await startTestGateway({ servers: [nodeServer('up', [FIXTURE])], policy: [{ allow: ['*'] }] })
})
after(() => gateway.close())

describe('a tool of a server that answers with isError', () => {
  it('counts as failed in the audit, its filters and the metrics, and its client gets the result unchanged', async () => {
    for (const era of ERAS) {
      const answer: RpcAnswer = await gateway.call('admin', era, 'up__fail')
      assert.equal(answer.result?.isError, true)
      assert.match(textOf(answer), /^(?:null|\{)/)
      await gateway.call('admin', era, 'up__meta')
    }
    const ended = async (outcome: string) => {
      const { body } = await gateway.api(`/api/audit?outcome=${outcome}`)
      return (body as AuditBody).records.map(({ tool, is_error: isError }) => [tool, isError])
    }
    assert.deepEqual(
      await ended('failed'),
      ERAS.map(() => ['up:fail', true]),
    )
    assert.deepEqual(
      await ended('done'),
      ERAS.map(() => ['up:meta', undefined]),
    )
    const headers = { authorization: `Bearer ${KEYS.console}` }
    const { text } = await send(`${gateway.url}/metrics`, { method: 'GET', headers })
    assert.match(text, /status="failed",reason="tool_error"\} 4\n|reason="tool_error",status="failed"\} 4\n/)
  })
})
