import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { GatewayConfig, ToolsBody, WhyBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { KEYS, type Who } from './support/keys.ts'
import { FILES, Witness } from './support/items-witness.ts'
import { type Answer, hostEarlier, hostModern, type HostedServer, type Json } from './support/mcp-host.ts'
import { type Era, MODERN, type RpcAnswer } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Resources, prompts and completion through a gateway, in front of servers of both eras. */

const ERAS = ['2025-11-25', MODERN] as const
const ALL = ['tools', 'resources', 'prompts'] as const
const EVERYTHING = ['*', 'resource:*:*', 'prompt:*:*']
async function serve(
  given: Partial<GatewayConfig> = {},
  host: (answer: Answer) => Promise<HostedServer> = hostModern,
): Promise<{ readonly gateway: TestGateway; readonly witness: Witness; close(): Promise<void> }> {
  const witness = new Witness()
  const server = await host(witness.answer)
  const gateway = await startTestGateway({
    servers: [httpServer('files', server.url, { offers: ALL })],
    policy: [{ allow: EVERYTHING }],
    ...given,
  })
  return {
    gateway,
    witness,
    async close() {
      await gateway.close()
      await server.close()
    },
  }
}

type Served = Awaited<ReturnType<typeof serve>>

async function ask({ gateway }: Served, era: Era, method: string, params: Json = {}, who: Who = 'viewer') {
  return (await gateway.ask(who, era, method, params)).json() as RpcAnswer
}

/** Returns the result of an answer that must have one. */
function resultOf({ result, error }: RpcAnswer): Json {
  assert.ok(result, error?.message)
  return result
}

const uriOf = (era: Era) => (era === MODERN ? -32_602 : -32_002)
const read = (served: Served, era: Era, uri: string, who?: Who) => ask(served, era, 'resources/read', { uri }, who)
const listed = async (served: Served, era: Era, method: string, field: string, key: string) =>
  (resultOf(await ask(served, era, method))[field] as readonly Json[]).map((one) => one[key])

for (const host of [hostEarlier, hostModern])
  for (const era of ERAS)
    describe(`a client of ${era} before a server on ${host === hostEarlier ? 'SDK 1.x' : 'SDK 2.4'}`, () => {
      let served: Served
      before(async () => {
        served = await serve({}, host)
      })
      after(() => served?.close())

      it('lists what the server offers', async () => {
        assert.deepEqual(await listed(served, era, 'resources/list', 'resources', 'uri'), FILES.toSorted())
        const templates = await listed(served, era, 'resources/templates/list', 'resourceTemplates', 'uriTemplate')
        assert.deepEqual(templates, ['file:///work/{name}'])
        assert.deepEqual(await listed(served, era, 'prompts/list', 'prompts', 'name'), [
          'files__greet',
          'files__hidden',
        ])
      })

      it('reads listed and unlisted resources, and the links of results', async () => {
        const called = await ask(served, era, 'tools/call', { name: 'files__link', arguments: {} })
        const [link] = resultOf(called)['content'] as readonly { readonly uri?: string }[]
        for (const uri of [link?.uri ?? '', 'file:///work/not-listed'])
          assert.deepEqual((await read(served, era, uri)).result?.['contents'], [
            { uri, mimeType: 'text/plain', text: `content of ${uri}` },
          ])
      })

      it('gets a prompt by its name on the wire', async () => {
        const { result } = await ask(served, era, 'prompts/get', { name: 'files__greet', arguments: { who: 'you' } })
        assert.equal(result?.['description'], 'A greeting.')
        assert.ok(served.witness.seen.includes('prompts/get greet'))
        const { error } = await ask(served, era, 'prompts/get', { name: 'files__greet', arguments: {} })
        assert.equal(error?.code, -32_602)
        assert.match(error.message, /'who'/)
      })

      it('answers a URI that the server does not have as one that nothing has', async () => {
        const { error } = await read(served, era, 'file:///nowhere')
        assert.deepEqual(error, { code: uriOf(era), message: 'Resource not found', data: { uri: 'file:///nowhere' } })
      })
    })

describe('resources and prompts', () => {
  it('are denied unless a policy names them, also by a policy that allows everything else', async () => {
    const served = await serve({ policy: [{ deny: ['files:nothing'] }] })
    try {
      for (const era of ERAS) {
        assert.deepEqual(await listed(served, era, 'resources/list', 'resources', 'uri'), [])
        assert.deepEqual(await listed(served, era, 'prompts/list', 'prompts', 'name'), [])
        assert.equal((await read(served, era, FILES[0] ?? '')).error?.code, uriOf(era))
      }
      assert.deepEqual(served.witness.seen, [])
    } finally {
      await served.close()
    }
  })

  it('have no methods and no capabilities where no server offers them', async () => {
    const witness = new Witness()
    const server = await hostModern(witness.answer)
    const gateway = await startTestGateway({
      servers: [httpServer('files', server.url)],
      policy: [{ allow: EVERYTHING }],
    })
    try {
      for (const era of ERAS) {
        const answer = (await gateway.ask('viewer', era, 'resources/read', { uri: FILES[0] ?? '' })).json() as RpcAnswer
        assert.equal(answer.error?.code, -32_601)
      }
      const { result } = (await gateway.ask('viewer', MODERN, 'server/discover')).json() as RpcAnswer
      const offered = Object.keys(result?.['capabilities'] as Json)
      assert.deepEqual(
        offered.filter((name) => name !== 'extensions'),
        ['tools'],
      )
      assert.deepEqual(witness.seen, [])
    } finally {
      await gateway.close()
      await server.close()
    }
  })
})

const HIDING: Partial<GatewayConfig> = {
  policy: [
    {
      allow: EVERYTHING,
      deny: [
        'resource:files:file:///secret/*',
        'prompt:files:hidden',
        { match: 'resource:files:*', input: "input.uri == 'file:///work/b.txt'" },
      ],
    },
  ],
}

describe('what a policy hides', () => {
  let served: Served
  before(async () => {
    served = await serve(HIDING)
  })
  after(() => served?.close())

  for (const era of ERAS) {
    it(`is not listed, by rules over the URI too (${era})`, async () => {
      assert.deepEqual(await listed(served, era, 'resources/list', 'resources', 'uri'), ['file:///work/a.txt'])
      assert.deepEqual(await listed(served, era, 'prompts/list', 'prompts', 'name'), ['files__greet'])
    })

    it(`gets the bytes of what does not exist, and does not reach the server (${era})`, async () => {
      const seen = served.witness.seen.length
      const bytes = async (method: string, params: Json, name: string) => {
        const { status, headers, text } = await served.gateway.ask('viewer', era, method, params)
        const { date: _, 'content-length': length, ...rest } = headers
        return { status, rest, length: Number(length) - name.length, text: text.replaceAll(name, 'NAME') }
      }
      const readBytes = (uri: string) => bytes('resources/read', { uri }, uri)
      const unknown = await readBytes('nowhere:x')
      for (const uri of ['file:///secret/key', 'file:///secret/other', 'file:///work/b.txt'])
        assert.deepEqual(await readBytes(uri), unknown)
      const promptBytes = (name: string) => bytes('prompts/get', { name }, name)
      assert.deepEqual(await promptBytes('files__hidden'), await promptBytes('files__none'))
      const completeBytes = (ref: Json, name: string) =>
        bytes('completion/complete', { ref, argument: { name: 'x', value: 'y' } }, name)
      const promptRef = (name: string) => completeBytes({ type: 'ref/prompt', name }, name)
      assert.deepEqual(await promptRef('files__hidden'), await promptRef('files__none'))
      const uriRef = (uri: string) => completeBytes({ type: 'ref/resource', uri }, uri)
      assert.deepEqual(await uriRef('file:///secret/key'), await uriRef('nowhere:{x}'))
      assert.deepEqual(served.witness.seen.slice(seen), ['resources/read nowhere:x'])
    })

    it(`is not found by another spelling (${era})`, async () => {
      const seen = served.witness.seen.length
      const spellings = [
        'file:///work/../secret/key',
        'file:///work/%2e%2e/secret/key',
        'file:///work/..%2Fsecret/key',
        'FILE:///secret/key',
        'file:///%73ecret/key',
        'file://localhost/secret/key',
        'file:/secret/key',
        'file:////secret/key',
        'file:///secret/./key',
        'file:///work/b.txt?',
        'file:///work/b.txt#x',
        'file:///work/%62.txt',
      ]
      for (const uri of spellings) {
        const { error } = await read(served, era, uri)
        assert.deepEqual(error, { code: uriOf(era), message: 'Resource not found', data: { uri } }, uri)
      }
      assert.deepEqual(served.witness.seen.slice(seen), [])
    })
  }

  it('is not among the completions, nor in their total', async () => {
    const params = {
      ref: { type: 'ref/resource', uri: 'file:///work/{name}' },
      argument: { name: 'name', value: '' },
    }
    for (const era of ERAS) {
      const { result } = await ask(served, era, 'completion/complete', params)
      assert.deepEqual(result?.['completion'], { values: ['a.txt'], hasMore: true })
      const prompt = { ref: { type: 'ref/prompt', name: 'files__greet' }, argument: { name: 'who', value: '' } }
      const completed = await ask(served, era, 'completion/complete', prompt)
      const { values, total } = resultOf(completed)['completion'] as { values: string[]; total?: number }
      assert.deepEqual(values, ['a.txt', 'b.txt', '../secret/key'])
      assert.equal(total, undefined)
    }
  })
})

describe('a URI with needless coding', () => {
  const LISTED = 'file:///work/Secret_%28y%29'
  for (const host of [hostEarlier, hostModern])
    for (const era of ERAS)
      it(`is the resource without it (${era}, ${host.name})`, async () => {
        const deny = ['resource:files:file:///work/%64enied%28x%29', 'resource:files:file:///work/hidden_(y)']
        const served = await serve({ policy: [{ allow: EVERYTHING, deny }] }, async (answer) => {
          return host((method, params, turn) => {
            if (method !== 'resources/list') return answer(method, params, turn)
            const uris = [LISTED, 'file:///work/hidden_%28y%29']
            return { resources: uris.map((uri) => ({ uri, name: 'own' })) }
          })
        })
        try {
          for (const uri of ['file:///work/%6Eew%28x%29%40b', 'file:///work/new%28x)@b', 'file:///work/new(x)@b'])
            assert.ok((await read(served, era, uri)).result, uri)
          for (const uri of ['file:///work/Secret_(y)', 'file:///work/%53ecret_(y%29', LISTED])
            assert.ok((await read(served, era, uri)).result, uri)
          for (const uri of [
            'denied(x)',
            '%64enied%28x%29',
            'denied%28x)',
            'hidden_(y)',
            'hidden_%28y%29',
            'hidde%6e_(y)',
          ])
            assert.equal((await read(served, era, `file:///work/${uri}`)).error?.code, uriOf(era), uri)
          const sent = [
            ...Array(3).fill('resources/read file:///work/new(x)@b'),
            ...Array(3).fill(`resources/read ${LISTED}`),
          ]
          assert.deepEqual(served.witness.seen, sent)
          const completed = { type: 'ref/resource', uri: 'file:///work/%53ecret_(y)' }
          await ask(served, era, 'completion/complete', { ref: completed, argument: { name: 'a', value: 'b' } })
          const uri = 'file:///work/Secret%5F(y)'
          const asked = { key: KEYS.viewer, method: 'POST', body: { tool: `resource:files:${uri}`, input: { uri } } }
          const { body: decided } = await served.gateway.api('/api/decide', asked)
          assert.equal((decided as Json)['outcome'], 'allow')
          const { body: called } = await served.gateway.api('/api/call', asked)
          assert.equal((called as Json)['status'], 'done')
          assert.equal(served.witness.seen.at(-1), `resources/read ${LISTED}`)
          const { records } = (await served.gateway.api('/api/audit?limit=50')).body as { records: readonly Json[] }
          const tools = ['denied(x)', 'hidden_%28y%29', 'new(x)@b', 'Secret_%28y%29']
          assert.deepEqual(
            new Set(records.flatMap((one) => (one['kind'] === 'resource' ? one['tool'] : []))),
            new Set(tools.map((name) => `resource:files:file:///work/${name}`)),
          )
        } finally {
          await served.close()
        }
      })
})

describe('a template that is denied', () => {
  it('takes every URI with it that it may match', async () => {
    const served = await serve({ policy: [{ allow: EVERYTHING, deny: ['resource:files:file:///work/{name}'] }] })
    try {
      for (const era of ERAS) {
        assert.deepEqual(await listed(served, era, 'resources/list', 'resources', 'uri'), ['file:///secret/key'])
        assert.equal((await read(served, era, 'file:///work/new')).error?.code, uriOf(era))
        assert.ok((await read(served, era, 'file:///secret/key')).result)
      }
    } finally {
      await served.close()
    }
  })
})

describe('reads, prompts and completions', () => {
  it('are limited, asked for and recorded like calls', async () => {
    const served = await serve({
      policy: [{ allow: EVERYTHING, ask: ['prompt:files:greet'] }],
      limits: ['resource:files:*:2/60'],
    })
    try {
      const era = MODERN
      const greet = { name: 'files__greet', arguments: { who: 'you' } }
      assert.match((await ask(served, era, 'prompts/get', greet)).error?.message ?? '', /approv/i)
      const completed = await ask(served, era, 'completion/complete', {
        ref: { type: 'ref/prompt', name: 'files__greet' },
        argument: { name: 'who', value: 'y' },
      })
      assert.deepEqual(completed.result?.['completion'], { values: [], total: 0, hasMore: false })
      await read(served, era, FILES[0] ?? '')
      await ask(served, era, 'completion/complete', {
        ref: { type: 'ref/resource', uri: 'file:///work/{name}' },
        argument: { name: 'name', value: 'a' },
      })
      const limited = await read(served, era, FILES[0] ?? '')
      assert.match(limited.error?.message ?? '', /rate limited/)
      assert.ok(Object.hasOwn(limited.error?.data as Json, 'dev.toolgate/retry-after'))
      assert.deepEqual(served.witness.seen, [`resources/read ${FILES[0]}`, 'completion/complete'])
      const { records } = (await served.gateway.api('/api/audit?limit=50')).body as { records: readonly Json[] }
      const recorded = records.map((one) => [one['kind'], one['tool'], one['purpose'] ?? '-'].join(' '))
      assert.deepEqual([...new Set(recorded)].toSorted(), [
        'prompt prompt:files:greet -',
        'prompt prompt:files:greet complete',
        `resource resource:files:${FILES[0]} -`,
        'template resource:files:file:///work/{name} complete',
      ])
    } finally {
      await served.close()
    }
  })

  it('may be kept by nobody: each read is decided anew', async () => {
    const served = await serve()
    try {
      const { result } = await read(served, MODERN, FILES[0] ?? '')
      assert.equal(result?.['ttlMs'], 0)
      assert.equal(result?.['cacheScope'], 'private')
      for (const method of ['resources/list', 'resources/templates/list', 'prompts/list'])
        assert.equal((await ask(served, MODERN, method)).result?.['cacheScope'], 'private')
    } finally {
      await served.close()
    }
  })
})

describe('a long list', () => {
  it('has pages whose cursors hold for this list only', async () => {
    const witness = new Witness()
    witness.resources = Array.from({ length: 2500 }, (_, i) => ({ uri: `file:///work/${i}`, name: `${i}` }))
    const server = await hostModern(witness.answer)
    const gateway = await startTestGateway({
      servers: [httpServer('files', server.url, { offers: ALL })],
      policy: [{ allow: EVERYTHING, deny: [{ match: 'resource:files:*/7', unless: "'admin' in caller.roles" }] }],
    })
    try {
      for (const era of ERAS) {
        const page = async (cursor?: unknown, who: Who = 'viewer') =>
          (await gateway.ask(who, era, 'resources/list', cursor === undefined ? {} : { cursor })).json() as RpcAnswer
        const uris: unknown[] = []
        const cursors: unknown[] = []
        let cursor: unknown
        do {
          const result = resultOf(await page(cursor))
          uris.push(...(result['resources'] as readonly Json[]).map(({ uri }) => uri))
          cursor = result['nextCursor']
          if (cursor !== undefined) cursors.push(cursor)
        } while (cursor !== undefined)
        assert.equal(new Set(uris).size, 2499)
        assert.equal(cursors.length, 2)
        for (const wrong of ['', 'x', 1000, '1000', '1000.', `${String(cursors[0])}x`, '0.x', {}])
          assert.equal((await page(wrong)).error?.code, -32_602, JSON.stringify(wrong))
        assert.equal((await page(cursors[0], 'admin')).error?.code, -32_602, 'another list')
      }
    } finally {
      await gateway.close()
      await server.close()
    }
  })
})

describe('people', () => {
  it('see what a caller sees of each kind, and why', async () => {
    const served = await serve({ policy: [{ allow: EVERYTHING, deny: ['resource:files:*secret*'] }] })
    try {
      for (const kind of ['resource', 'template', 'prompt']) {
        const { body } = await served.gateway.api(`/api/tools?as=viewer&kind=${kind}`)
        const { tools } = body as ToolsBody
        assert.ok(tools.length > 0 && tools.every((row) => row.kind === kind && row.wireName !== ''), kind)
      }
      for (const [id, outcome] of [
        ['resource:files:file:///nobody/lists-this.md', 'allow'],
        ['resource:files:file:///nobody/lists-this-secret.md', 'deny'],
      ] as const) {
        const { body } = await served.gateway.api(`/api/why?as=viewer&tool=${encodeURIComponent(id)}`)
        assert.equal((body as WhyBody).outcome, outcome, id)
      }
    } finally {
      await served.close()
    }
  })
})

describe('a URI that two servers could own', () => {
  it('is hidden, whichever lists it', async () => {
    const [one, two] = [new Witness(), new Witness()]
    one.resources = [
      { uri: 'file:///work/a.txt', name: 'a' },
      { uri: 'own:one', name: 'one' },
    ]
    two.resources = [{ uri: 'own:two', name: 'two' }]
    const servers = [await hostModern(one.answer), await hostEarlier(two.answer)]
    const gateway = await startTestGateway({
      servers: servers.map(({ url }, i) => httpServer(`s${i}`, url, { offers: ALL })),
      policy: [{ allow: EVERYTHING }],
    })
    const served = { gateway, witness: one, close: async () => {} }
    try {
      for (const era of ERAS) {
        assert.deepEqual(await listed(served, era, 'resources/list', 'resources', 'uri'), ['own:one', 'own:two'])
        // Both have a template for it; neither has one for the other, which either may have.
        for (const uri of ['file:///work/a.txt', 'other:x'])
          assert.deepEqual((await read(served, era, uri)).error?.message, 'Resource not found')
      }
      assert.deepEqual([...one.seen, ...two.seen], [])
      const warning = gateway.log.find(({ message }) => message.includes('file:///work/a.txt'))
      assert.match(warning?.message ?? '', /s0.*s1/)
    } finally {
      await gateway.close()
      for (const server of servers) await server.close()
    }
  })
})
