import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { ElicitationRequest, Options } from '@anthropic-ai/claude-agent-sdk'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { KEYS } from '../support/keys.ts'
import { startRecordingServer, type RecordingServer } from '../support/recording-server.ts'
import { httpServer } from '../support/servers.ts'
import { BYPASS, createPlace, type Place, use } from './support/query.ts'

/** The Claude Agent SDK as a client of the gateway: it speaks 2026-07-28 and declares that it opens URLs. */

const SEND = 'mcp__gate__pay__send'
const WAITING = /Waiting for approval of pay__send\./

describe('the Claude Agent SDK at the doors of approval of a gateway', () => {
  let place: Place
  let server: RecordingServer
  let gateway: TestGateway
  before(async () => {
    place = createPlace()
    server = await startRecordingServer([
      { name: 'send', inputSchema: { type: 'object', properties: { cents: { type: 'number' } } } },
    ])
    gateway = await startTestGateway({ servers: [httpServer('pay', server.url)], policy: [{ ask: ['pay:send'] }] })
  })
  after(async () => {
    await gateway?.close()
    await server?.close()
    place?.close()
  })
  beforeEach(() => server.forget())

  /** Returns what the model is told of its one call. */
  async function call(cents: number, onElicitation?: Options['onElicitation']): Promise<string> {
    const { told, error } = await place.run([[use(SEND, { cents })]], {
      ...BYPASS,
      mcpServersDelivery: 'initialize',
      mcpServers: { gate: { type: 'http', url: gateway.mcpUrl, headers: { authorization: `Bearer ${KEYS.viewer}` } } },
      ...(onElicitation ? { onElicitation } : {}),
    })
    assert.equal(error, undefined)
    return told.get('toolu_1') ?? ''
  }

  const pending = () => gateway.gate.approvals.list({ status: 'pending' })
  const runs = () => server.calls('send').length

  /** Decides the one call that waits, as the console does. */
  async function decide(decision: 'approve' | 'reject', cents: number): Promise<string> {
    const [asked, ...others] = await pending()
    assert.deepEqual([asked?.tool, asked?.input, others], ['pay:send', { cents }, []])
    const { status } = await gateway.api(`/api/approvals/${asked?.id}`, { method: 'POST', body: { decision } })
    assert.equal(status, 200)
    return asked?.id ?? ''
  }

  it('tells the model the text where its host opens no links, runs once after the approval, and asks again', async () => {
    assert.match(await call(1), WAITING)
    assert.equal(runs(), 0)
    await decide('approve', 1)
    assert.equal(await call(1), 'send ran')
    assert.match(await call(1), WAITING)
    assert.equal(runs(), 1)
    await decide('reject', 1)
    assert.match(await call(1), /a person rejected this call/)
    assert.equal(runs(), 1)
  })

  it('gives its host the link, and its one call runs once when the person has approved', async () => {
    const opened: ElicitationRequest[] = []
    let approved = ''
    const told = await call(2, async (request) => {
      opened.push(request)
      assert.equal(runs(), 0)
      approved = await decide('approve', 2)
      return { action: 'accept' }
    })
    assert.equal(told, 'send ran')
    assert.deepEqual(
      opened.map(({ serverName, mode, url, message }) => [serverName, mode, url, message]),
      [
        [
          'gate',
          'url',
          `${gateway.url}/approvals/${approved}`,
          'A person must approve this call of pay__send before it runs.',
        ],
      ],
    )
    assert.deepEqual([runs(), await pending()], [1, []])
  })

  it('tells the model the refusal when the person rejects, whatever its host answers', async () => {
    const told = await call(3, async () => {
      await decide('reject', 3)
      return { action: 'accept' }
    })
    assert.match(told, /a person rejected this call/)
    assert.equal(runs(), 0)
  })
})
