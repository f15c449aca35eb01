import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '@toolgate/core'
import { ApiFault } from '../../model/faults.ts'
import { logsRoute } from './logs.ts'
import { heartOf } from '../../testing/heart.ts'
import type { LogsBody, ServerRow } from '../../model/rows.ts'

const SECRET = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'
const OWNER: Caller = { user: 'owner', roles: ['operator'] }

async function ask(query: string, person: Caller = OWNER): Promise<LogsBody> {
  const asked: object[] = []
  const of = (server: string, range: object) => {
    asked.push({ server, ...range })
    return [{ seq: 3, wallMs: 0, level: 'stderr', text: `token=${SECRET}` }]
  }
  const route = logsRoute(heartOf({ fleet: { rows: () => [{ name: 'files' } as ServerRow], logs: { of } } }))
  const request = new Request('http://gateway/api/logs')
  const body = await route({ request, query: new URLSearchParams(query), person, loginAt: 0, id: '' })
  return { ...(body as LogsBody), ...asked[0] }
}

describe('GET /api/logs', () => {
  it('returns the lines of a server without secrets', async () => {
    const { lines, ...range } = await ask('server=files&after=2&limit=10')
    assert.deepEqual(range, { server: 'files', after: 2, limit: 10 })
    assert.deepEqual(lines, [{ seq: 3, wallMs: 0, level: 'stderr', text: 'token=[redacted:token]' }])
  })

  it('is for operators and approvers of no tenant', async () => {
    for (const person of [
      { user: 'reader' },
      { user: 'olga', tenant: 'acme', roles: ['operator'] },
      { user: 'ada', roles: ['admin'] },
    ])
      await assert.rejects(ask('server=files', person), (error: ApiFault) => error.code === 'logs_forbidden')
  })

  it('names the nearest server, and wants one', async () => {
    await assert.rejects(ask('server=flies'), { message: 'No server is named "flies". Did you mean "files"?' })
    await assert.rejects(ask(''), { code: 'query_invalid' })
    await assert.rejects(ask('server=files&limit=501'), { code: 'query_invalid' })
  })
})
