import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { everythingOverHttp, HOSTILE, nodeServer, SERVERS, testUpstream } from '../../../fixtures/servers.ts'
import { OFFERS } from '../../model/upstream.ts'

const all = { offers: OFFERS }
const { signal } = new AbortController()
const uris = (items: readonly { readonly uri: string }[]) => items.map(({ uri }) => uri)

describe('the items of a server', () => {
  for (const [where, config] of [
    ['stdio', nodeServer([SERVERS.everything, 'stdio'], all)],
    ['HTTP', everythingOverHttp(all)],
  ] as const) {
    it(`are the kinds that its entry offers, over ${where}`, async (t) => {
      const server = testUpstream(t, config)
      await server.start()
      const { tools, resources, templates, prompts } = server.items
      assert.ok(tools.length > 0)
      assert.ok(uris(resources).includes('demo://resource/static/document/architecture.md'))
      assert.deepEqual(
        templates.map(({ uriTemplate }) => uriTemplate),
        ['demo://resource/dynamic/text/{resourceId}', 'demo://resource/dynamic/blob/{resourceId}'],
      )
      assert.ok(prompts.some(({ name }) => name === 'args-prompt'))
      const request = { caller: {}, signal }
      const uri = 'demo://resource/dynamic/text/7'
      const { contents } = await server.call({ ...request, method: 'resources/read', params: { uri } })
      assert.equal((contents as { uri: string }[])[0]?.uri, uri)
      const asked = { name: 'args-prompt', arguments: { city: 'Bern' } }
      const { messages } = await server.call({ ...request, method: 'prompts/get', params: asked })
      assert.match(JSON.stringify(messages), /Bern/)
      const ref = { type: 'ref/prompt', name: 'completable-prompt' }
      const argument = { name: 'department', value: 'E' }
      const completed = await server.call({ ...request, method: 'completion/complete', params: { ref, argument } })
      assert.deepEqual((completed['completion'] as { values: string[] }).values, ['Engineering'])
    })
  }

  it('are tools alone if its entry says nothing', async (t) => {
    const server = testUpstream(t, nodeServer([SERVERS.everything, 'stdio']))
    await server.start()
    const { tools, ...others } = server.items
    assert.ok(tools.length > 0)
    assert.deepEqual(others, { resources: [], templates: [], prompts: [] })
    assert.deepEqual(server.state.has, OFFERS)
  })

  it('are cut by the list: one that is too long is not offered, and the others are', async (t) => {
    const server = testUpstream(t, nodeServer([HOSTILE, 'too-many-resources'], all))
    await server.start()
    const { tools, resources, prompts } = server.items
    assert.deepEqual([tools.length > 0, resources.length, prompts.length], [true, 0, 1])
    assert.deepEqual(server.state.rejected, [
      { kind: 'resource', name: 'resources/list', reason: 'lists more than 10000 resources' },
    ])
    assert.ok(server.lines.some(({ detail }) => detail === 'lists more than 10000 resources'))
    assert.equal(server.state.status, 'ready')
  })

  it('have at most 500 templates, since each resource is compared with each of them', async (t) => {
    const server = testUpstream(t, nodeServer([HOSTILE, 'too-many-templates'], all))
    await server.start()
    assert.deepEqual([uris(server.items.resources), server.items.templates], [['file:///a'], []])
    const reason = 'lists more than 500 resource templates'
    assert.ok(server.state.rejected.some((one) => one.reason === reason))
  })

  it('are rejected one by one, each with its reason', async (t) => {
    const server = testUpstream(t, nodeServer([HOSTILE, 'bad-items'], all))
    await server.start()
    assert.deepEqual(uris(server.items.resources), ['file:///a'])
    assert.deepEqual(
      server.items.prompts.map(({ name }) => name),
      ['greet'],
    )
    const rejected = server.state.rejected.map(({ kind, name, reason }) => `${kind} ${name}: ${reason}`)
    assert.deepEqual(rejected, [
      'resource file:///a: is listed twice; the first counts',
      'resource resources[2]: has no uri',
      'resource file:///nameless: has no name',
      'resource file:///typed: has a mimeType that is not a string',
      'resource resources[5]: is not an object',
      'resource file:///long: is larger than 262144 characters',
      'template resourceTemplates[0]: has no uriTemplate',
      'prompt asks: has arguments that are not a list of named ones',
    ])
  })

  it('may lack templates: a server with resources need not know the request', async (t) => {
    const server = testUpstream(t, nodeServer([HOSTILE, 'too-many-resources'], all))
    await server.start()
    assert.ok(!server.state.rejected.some(({ kind }) => kind === 'template'))
  })
})
