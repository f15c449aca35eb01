import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { EXPOSE_TARGETS } from '@toolgate/expose'
import type { GroupsBody, ToolBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { httpServer } from './support/servers.ts'

/** The data of the console's pages of groups and of one tool. */

const SECRET = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'
let upstream: RecordingServer
let gateway: TestGateway

before(async () => {
  upstream = await startRecordingServer([
    {
      name: 'open',
      description: `Opens a page with ${SECRET}.`,
      inputSchema: {
        type: 'object',
        properties: {
          password: { type: 'string', pattern: '^a', description: `Like ${SECRET}` },
          at: { type: 'string', format: 'date-time' },
        },
      },
    },
    { name: 'bad', inputSchema: { type: 'object', properties: { 'a b': { type: 'string' } }, required: ['a b'] } },
  ])
  gateway = await startTestGateway({
    servers: [httpServer('up', upstream.url)],
    groups: [
      {
        name: 'web',
        tools: ['up:open'],
        visibility: 'always',
        dependsOn: [],
        availableWhen: [],
        unlock: 'request',
        hint: 'Opens.',
      },
      { name: 'rest', tools: ['up:bad'], visibility: 'always', dependsOn: [], availableWhen: [] },
    ],
    limits: ['group:web:5/60', '*:100/60', 'up:bad:1/60', { match: '*', max: 9, windowMs: 1500, per: ['tenant'] }],
    policy: [{ deny: [{ match: 'up:open', unless: "'admin' in caller.roles" }] }],
  })
})

after(async () => {
  await gateway?.close()
  await upstream?.close()
})

describe('GET /api/tool', () => {
  it('returns one tool with its schema, groups, limits and decision', async () => {
    const { status, body } = await gateway.api('/api/tool?tool=up:open&as=viewer')
    const tool = body as ToolBody
    assert.equal(status, 200)
    assert.deepEqual([tool.tool.id, tool.tool.outcome, tool.tool.visible], ['up:open', 'deny', false])
    assert.deepEqual([tool.groups, tool.limits], [['web'], ['group:web:5/60', '*:100/60', '*:9/1.5 per tenant']])
    const { properties } = tool.inputSchema as { properties: Record<string, { type: string; pattern: string }> }
    assert.deepEqual([properties['password']?.type, properties['password']?.pattern], ['string', '^a'])
    const seen = (await gateway.api('/api/tool?tool=up:open&as=admin')).body as ToolBody
    assert.deepEqual([seen.tool.outcome, seen.exports], ['allow', tool.exports])
  })

  it('returns its export for each provider, with warnings and tokens', async () => {
    const { exports } = (await gateway.api('/api/tool?tool=up:open&as=admin')).body as ToolBody
    assert.deepEqual(
      exports.map(({ target }) => target),
      EXPOSE_TARGETS,
    )
    assert.ok(exports.every(({ tokens = 0, errors }) => tokens > 10 && errors.length === 0))
    assert.ok(exports.some(({ warnings }) => warnings.length > 0))
    assert.match(JSON.stringify(exports[0]?.definition), /up__open/)
  })

  it('says why it cannot be exported for a provider', async () => {
    const { exports } = (await gateway.api('/api/tool?tool=up:bad&as=admin')).body as ToolBody
    const failed = exports.filter(({ errors }) => errors.length > 0)
    assert.ok(failed.length > 0)
    assert.ok(failed.every(({ tokens }) => tokens === undefined))
  })

  it('masks secrets', async () => {
    const { body } = await gateway.api('/api/tool?tool=up:open&as=admin')
    assert.ok(!JSON.stringify(body).includes(SECRET))
  })

  it('names the problem of a query', async () => {
    const code = async (query: string) =>
      ((await gateway.api(`/api/tool${query}`)).body as { error: { code: string } }).error.code
    assert.equal(await code('?tool=up:none&as=admin'), 'tool_unknown')
    assert.equal(await code('?tool=up:open&as=nobody'), 'caller_unknown')
    assert.equal(await code('?as=admin'), 'query_invalid')
    assert.equal(await code('?tool=up:open&as=admin&x=1'), 'query_invalid')
  })
})

describe('GET /api/groups', () => {
  it('returns the groups in the order of the configuration, with their badges', async () => {
    const { groups } = (await gateway.api('/api/groups')).body as GroupsBody
    assert.deepEqual(
      groups.map(({ name, badge, hint, tools }) => [name, badge, hint, tools]),
      [
        ['web', 'locked', 'Opens.', ['up:open']],
        ['rest', 'always', undefined, ['up:bad']],
      ],
    )
  })
})
