import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { AuditBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { ERAS } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

describe('an invalid call', () => {
  let upstream: RecordingServer
  let gateway: TestGateway
  before(async () => {
    upstream = await startRecordingServer([{ name: 'read' }, { name: 'drop' }])
    gateway = await startTestGateway({
      servers: [httpServer('up', upstream.url)],
      policy: [{ deny: ['up:drop'] }],
    })
  })
  after(async () => {
    await gateway?.close()
    await upstream?.close()
  })

  const newest = async () => {
    const { body } = await gateway.api('/api/audit?limit=1', { key: 'demo-console' })
    return (body as AuditBody).records[0]
  }

  const MALFORMED = [
    {
      shows: 'arguments in a list',
      params: { name: 'up__read', arguments: [] },
      tool: 'up:read',
      reason: 'input_invalid',
    },
    {
      shows: 'arguments in a text',
      params: { name: 'up__read', arguments: 'x' },
      tool: 'up:read',
      reason: 'input_invalid',
    },
    {
      shows: 'a hidden tool, with arguments in a list',
      params: { name: 'up__drop', arguments: [] },
      tool: 'up:drop',
      reason: 'policy_denied',
    },
    { shows: 'a name that is not a text', params: { name: 7 }, tool: '(no name)', reason: 'tool_not_found' },
    { shows: 'no name', params: {}, tool: '(no name)', reason: 'tool_not_found' },
    {
      shows: 'a progress token that is an object',
      params: { name: 'up__read', _meta: { progressToken: {} } },
      tool: 'up:read',
      reason: 'input_invalid',
    },
  ]
  for (const era of ERAS) {
    for (const { shows, params, tool, reason } of MALFORMED) {
      it(`is refused and recorded: ${shows} (${era})`, async () => {
        const seq = (await newest())?.seq ?? 0
        const { text } = await gateway.ask('viewer', era, 'tools/call', params)
        assert.match(text, /"code":-326/)
        const record = await newest()
        assert.deepEqual(
          [record?.seq, record?.event, record?.tool, record?.reason],
          [seq + 1, 'tool_blocked', tool, reason],
        )
      })
    }
  }

  it('is recorded if its headers name another tool', async () => {
    await gateway.ask(
      'viewer',
      '2026-07-28',
      'tools/call',
      { name: 'up__drop' },
      { headers: { 'mcp-name': 'up__read' } },
    )
    const record = await newest()
    assert.deepEqual([record?.event, record?.tool], ['tool_blocked', 'up:drop'])
  })

  it('does not reach a server', () => {
    assert.deepEqual(upstream.calls(), [])
  })
})
