import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, memoryAudit } from '@toolgate/core'
import { heartOf } from '../../testing/heart.ts'
import { callsExportRoute, callsRoute } from './routes.ts'
import type { CallsBody } from '../../model/rows.ts'

const OWNER: Caller = { user: 'owner' }
const OF_ACME: Caller = { user: 'olga', tenant: 'acme', roles: ['approver'] }
const audit = memoryAudit()
for (const [i, tenant] of (['acme', 'other', undefined, 'acme'] as const).entries())
  for (const event of ['tool_call', 'tool_result'] as const)
    audit.write({
      event,
      wallMs: i,
      tool: 'files:read',
      tool_call_id: `c${i}`,
      tenant,
      policy_revision: 1,
      catalog_revision: 1,
    })

describe('GET /api/calls', () => {
  it('returns calls with their records', async () => {
    const { calls } = await list('')
    assert.deepEqual(
      calls.map(({ id, records }) => [id, records.length]),
      [
        ['c3', 2],
        ['c2', 2],
        ['c1', 2],
        ['c0', 2],
      ],
    )
  })

  it('pages by the cursor that it returns', async () => {
    const { calls, next } = await list('limit=3')
    assert.equal(calls.length, 3)
    const rest = await list(`limit=3&before=${next}`)
    assert.deepEqual([rest.calls.map(({ id }) => id), rest.next], [['c0'], undefined])
  })

  it('shows a person of a tenant the calls of that tenant, whatever is asked for', async () => {
    for (const query of ['', 'tenant=acme'])
      assert.deepEqual(
        (await list(query, OF_ACME)).calls.map(({ id }) => id),
        ['c3', 'c0'],
      )
    for (const query of ['tenant=other', 'call=c1', 'call=c2', 'call=c1&before=100'])
      assert.deepEqual((await list(query, OF_ACME)).calls, [], query)
  })

  it('rejects unknown parameters and values, naming them', async () => {
    await assert.rejects(list('nope=1'), { message: /"nope" is unknown; known are .*tool.*text/ })
    await assert.rejects(list('outcome=ended'), { message: /must be one of done, .*running/ })
    await assert.rejects(list('limit=501'), { message: /"limit" must be a whole number from 1 to 500/ })
    await assert.rejects(list('slower=-1'), { code: 'query_invalid' })
    await assert.rejects(list('since=yesterday'), { code: 'query_invalid' })
  })
})

describe('GET /api/calls/export', () => {
  it('returns JSON lines or CSV, as a file', async () => {
    const lines = await download('')
    assert.deepEqual(
      [lines.type, lines.name, lines.text.trim().split('\n').length],
      ['application/x-ndjson; charset=utf-8', 'attachment; filename="calls.jsonl"', 4],
    )
    const csv = await download('format=csv&call=c1')
    assert.deepEqual(
      [csv.type, csv.name, csv.text.split('\r\n').length],
      ['text/csv; charset=utf-8', 'attachment; filename="calls.csv"', 3],
    )
    await assert.rejects(download('format=xml'), { message: /must be one of jsonl, csv/ })
  })

  it('has for a person of a tenant the calls of that tenant alone', async () => {
    const ids = (text: string): string[] =>
      text
        .split('\n')
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { id: string }).id)
    assert.deepEqual(ids((await download('', OF_ACME)).text), ['c0', 'c3'])
    assert.deepEqual(ids((await download('tenant=other', OF_ACME)).text), [])
  })
})

async function list(query: string, person = OWNER): Promise<CallsBody> {
  return (await ask(callsRoute, query, person)) as CallsBody
}

async function download(query: string, person = OWNER): Promise<{ type: string; name: string; text: string }> {
  const answer = (await ask(callsExportRoute, query, person)) as Response
  const { headers } = answer
  return {
    type: headers.get('content-type') ?? '',
    name: headers.get('content-disposition') ?? '',
    text: await answer.text(),
  }
}

async function ask(route: typeof callsRoute, query: string, person: Caller): Promise<object> {
  const request = new Request('http://gateway/api/calls')
  return route(heartOf({ audit }))({
    request,
    query: new URLSearchParams(query),
    person,
    loginAt: 0,
    id: '',
  })
}
