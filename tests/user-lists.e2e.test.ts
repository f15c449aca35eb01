import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { callerConfig, CALLERS, KEYS, type Who } from './support/keys.ts'
import { ERAS, type Era, MODERN, type RpcAnswer, textOf } from './support/rpc.ts'
import { nodeServer, type ServerConfig } from './support/servers.ts'

const SIGNED_IN = join(import.meta.dirname, '../packages/gateway/fixtures/signed-in-stdio.ts')
const OFFERS = ['tools', 'resources', 'prompts'] as const

/** A server whose users each have their own list. */
function mailServer(): ServerConfig {
  const { cwd: _shared, ...server } = nodeServer('mail', [SIGNED_IN, '${user}'], {
    per: 'user',
    listing: 'user',
    offers: OFFERS,
  })
  return server
}

const ALLOW = { allow: ['*', 'resource:*:*', 'prompt:*:*'] }
const folder = tempFolder()
let gateway: TestGateway

const start = (instances: object = {}, more: object = {}) =>
  startTestGateway({
    servers: [
      mailServer(),
      nodeServer('echo', [join(import.meta.dirname, '../packages/gateway/fixtures/meta-stdio.js')]),
    ],
    callers: [...CALLERS, callerConfig('demo-fails', { user: 'fails' })],
    policy: [ALLOW],
    instances: { path: folder.path, ...instances },
    ...more,
  })

before(async () => {
  gateway = await start()
})

after(async () => {
  await gateway?.close()
  folder.remove()
})

const namesOf = async (who: Who, era: Era, method: string, field: string, at: TestGateway = gateway) => {
  const { result } = toAnswer(await at.ask(who, era, method))
  return ((result?.[field] ?? []) as { readonly name: string }[])
    .map(({ name }) => name)
    .filter((name) => !name.startsWith('echo__'))
}
const toAnswer = (answer: { json(): unknown }) => answer.json() as RpcAnswer
const toolsOf = (who: Who, era: Era, at?: TestGateway) => namesOf(who, era, 'tools/list', 'tools', at)

describe('a server that lists for each user apart', () => {
  it('shows each user the list of their own instance, which the first request starts, in any era', async () => {
    for (const era of ERAS)
      for (const who of ['viewer', 'operator'] as const) {
        assert.deepEqual(await toolsOf(who, era), ['mail__grant', `mail__only_${who}`, 'mail__revoke', 'mail__whoami'])
        assert.deepEqual(await namesOf(who, era, 'prompts/list', 'prompts'), ['mail__hello', `mail__hello_${who}`])
        assert.deepEqual(await namesOf(who, era, 'resources/list', 'resources'), [who])
      }
  })

  it('checks an input by the schema of the caller’s own tool, and runs it in their instance', async () => {
    for (const era of ERAS)
      for (const [who, other] of [
        ['viewer', 'operator'],
        ['operator', 'viewer'],
      ] as const) {
        assert.equal(textOf(await gateway.call(who, era, 'mail__whoami', { [`of_${who}`]: 'x' })), `whoami of ${who}`)
        const refused = await gateway.call(who, era, 'mail__whoami', { [`of_${other}`]: 'x' })
        assert.equal(refused.result?.isError, true)
        assert.match(textOf(refused), new RegExp(`of_${other}`))
      }
  })

  it('answers for what only another user has as if nobody had it, byte for byte', async (t) => {
    const own = tempFolder()
    const alone = await start({ path: own.path })
    t.after(async () => {
      await alone.close()
      own.remove()
    })
    await toolsOf('operator', MODERN)
    for (const era of ERAS)
      for (const [method, params] of [
        ['tools/call', { name: 'mail__only_operator', arguments: {} }],
        ['prompts/get', { name: 'mail__hello_operator' }],
        [
          'completion/complete',
          { ref: { type: 'ref/prompt', name: 'mail__hello_operator' }, argument: { name: 'a', value: '' } },
        ],
      ] as const) {
        const [known, unknown] = [
          await gateway.ask('viewer', era, method, params),
          await alone.ask('viewer', era, method, params),
        ]
        assert.equal(known.text, unknown.text, `${method} in ${era}`)
        assert.deepEqual({ ...known.headers, date: '' }, { ...unknown.headers, date: '' })
      }
    assert.equal(alone.gate.catalog.own.length, 1)
  })

  it('lets a call of a user end in the instance that a reload replaces', async (t) => {
    const own = tempFolder()
    const { cwd: _shared, ...server } = mailServer()
    const servers = { before: [server], after: [{ ...server, callTimeoutMs: server.callTimeoutMs + 1 }] }
    let now: keyof typeof servers = 'before'
    const replaced = await startTestGateway(
      { servers: servers.before, instances: { path: own.path }, policy: [ALLOW], drainMs: 60_000 },
      () => ({ servers: servers[now] }),
    )
    t.after(async () => {
      await replaced.close()
      own.remove()
    })
    await replaced.call('viewer', MODERN, 'mail__grant', { tool: 'hold' })
    await until(async () => (await toolsOf('viewer', MODERN, replaced)).includes('mail__hold'))
    const running = replaced.call('viewer', MODERN, 'mail__hold')
    await until(async () => {
      const { body } = await replaced.api('/api/audit?event=tool_call')
      return (body as { records: readonly { tool?: string }[] }).records.some((one) => one.tool === 'mail:hold')
    })
    now = 'after'
    assert.equal((await replaced.reload()).isApplied, true)
    const folders = readdirSync(own.path, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('tools.json'),
    )
    for (const file of folders) writeFileSync(join(own.path, file, '../release'), '')
    assert.equal(textOf(await running), 'hold of viewer')
    await until(async () => (await toolsOf('viewer', MODERN, replaced)).includes('mail__whoami'), 15000)
  })

  it('reads a user’s list again, and announces it, once the call ends that their instance before a reload runs', async (t) => {
    const own = tempFolder()
    const { cwd: _shared, ...server } = mailServer()
    const changed = { ...server, callTimeoutMs: server.callTimeoutMs + 1 }
    const given = { servers: [server], instances: { path: own.path }, policy: [ALLOW], drainMs: 600_000 }
    const replaced = await startTestGateway(given, () => ({ servers: [changed] }))
    let seen: readonly string[] = []
    const client = new Client(
      { name: 'viewer', version: '1' },
      {
        listChanged: {
          tools: { debounceMs: 0, onChanged: (_, tools) => void (seen = tools?.map(({ name }) => name) ?? seen) },
        },
      },
    )
    t.after(async () => {
      await client.close()
      await replaced.close()
      own.remove()
    })
    const requestInit = { headers: { authorization: `Bearer ${KEYS.viewer}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(replaced.mcpUrl), { requestInit }))
    await replaced.call('viewer', MODERN, 'mail__grant', { tool: 'hold' })
    await until(() => seen.includes('mail__hold'))
    const running = replaced.call('viewer', MODERN, 'mail__hold')
    await until(() => replaced.servers()[0]?.instances?.running === 1)
    await replaced.reload()
    await until(() => seen.length === 0)
    const { lists } = (await replaced.api('/api/tools?as=viewer')).body as Body
    assert.match(JSON.stringify(lists), /has just changed, and still runs a call as it was/)
    const folderOf = readdirSync(join(own.path, 'mail')).find((name) => name.startsWith('viewer~')) ?? ''
    writeFileSync(join(own.path, 'mail', folderOf, 'work/release'), '')
    assert.equal(textOf(await running), 'hold of viewer')
    await until(() => seen.includes('mail__whoami'))
  })

  it('announces a change to the user whom it concerns, and to nobody else', async () => {
    const heard: Record<string, number> = { viewer: 0, operator: 0, admin: 0 }
    const clients = await Promise.all(
      (['viewer', 'operator', 'admin'] as const).map(async (who) => {
        const client = new Client(
          { name: who, version: '1' },
          { listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => void heard[who]!++ } } },
        )
        await client.connect(
          new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), {
            requestInit: { headers: { authorization: `Bearer ${KEYS[who]}` } },
          }),
        )
        await client.listTools()
        return client
      }),
    )
    try {
      await gateway.call('viewer', MODERN, 'mail__grant', { tool: 'extra' })
      await until(() => heard['viewer']! > 0)
      assert.ok((await toolsOf('viewer', MODERN)).includes('mail__extra'))
      assert.equal(textOf(await gateway.call('viewer', MODERN, 'mail__extra')), 'extra of viewer')
      await gateway.call('operator', MODERN, 'mail__grant', { tool: 'late' })
      await until(() => heard['operator']! > 0)
      // A change of the admin's list would have been announced with the operator's.
      assert.equal(heard['admin'], 0)
      assert.ok(!(await toolsOf('operator', MODERN)).includes('mail__extra'))
    } finally {
      await Promise.all(clients.map((client) => client.close()))
    }
  })

  it('keeps a list when its instance ends, and reads it again before the next call', async (t) => {
    const own = tempFolder()
    const small = await start({ path: own.path, max: 1 })
    t.after(async () => {
      await small.close()
      own.remove()
    })
    await toolsOf('viewer', MODERN, small)
    await small.call('viewer', MODERN, 'mail__grant', { tool: 'extra' })
    await until(async () => (await toolsOf('viewer', MODERN, small)).includes('mail__extra'))
    // The only place goes to another user.
    await until(async () => (await toolsOf('operator', MODERN, small)).length > 0)
    assert.equal(small.servers()[0]?.instances?.users?.[0]?.user, 'operator')
    assert.equal(textOf(await small.call('viewer', MODERN, 'mail__extra')), 'extra of viewer')
  })

  it('finds the tools of a user whose list is not known yet when they are called', async (t) => {
    const own = tempFolder()
    const fresh = await start({ path: own.path })
    t.after(async () => {
      await fresh.close()
      own.remove()
    })
    assert.equal(textOf(await fresh.call('admin', MODERN, 'mail__only_admin')), 'only_admin of admin')
  })

  it('lists the rest for a user whose instance does not start', async () => {
    const { result } = toAnswer(await gateway.ask('fails' as Who, MODERN, 'tools/list'))
    assert.deepEqual(
      result?.tools?.map(({ name }) => name.split('__')[0]),
      result?.tools?.map(() => 'echo'),
    )
  })

  it('says to a user without a place why their list is not known, and to people too', async (t) => {
    const own = tempFolder()
    const full = await start({ path: own.path, max: 1 })
    t.after(async () => {
      await full.close()
      own.remove()
    })
    await full.call('viewer', MODERN, 'mail__grant', { tool: 'hold' })
    await until(async () => (await toolsOf('viewer', MODERN, full)).includes('mail__hold'))
    const running = full.call('viewer', MODERN, 'mail__hold')
    await until(() => full.servers()[0]?.instances?.running === 1)
    assert.deepEqual(await toolsOf('operator', MODERN, full), [])
    for (const name of ['mail__whoami', 'mail__none'])
      assert.match(
        textOf(await full.call('operator', MODERN, name)),
        new RegExp(
          `^Tool "${name}" is not available\\..* The server mail cannot list for you now: all instances of its servers are in use\\. Try again later\\.$`,
        ),
      )
    const { lists } = (await full.api('/api/tools?as=operator')).body as Body
    assert.deepEqual(lists, [
      {
        server: 'mail',
        user: 'operator',
        state: 'unknown',
        reason: 'server "mail" has no instance for this user, and all 1 instances of all users are in use',
      },
    ])
    const ofViewer = readdirSync(join(own.path, 'mail')).find((name) => name.startsWith('viewer~')) ?? ''
    writeFileSync(join(own.path, 'mail', ofViewer, 'work/release'), '')
    assert.equal(textOf(await running), 'hold of viewer')
    await until(async () => textOf(await full.call('operator', MODERN, 'mail__whoami')) === 'whoami of operator')
  })

  it('stays what each user sees when the rules are read again, by the new policy and overlay', async (t) => {
    const own = tempFolder()
    const servers = [mailServer()]
    const given = { servers, policy: [ALLOW], instances: { path: own.path } }
    const overlay = new Map([['whoami', { tags: ['private'] }]])
    const reread = () => ({
      servers: [{ ...mailServer(), tools: overlay }],
      policy: [{ ...ALLOW, deny: ['tag:private'] }],
    })
    const reloaded = await startTestGateway(given, reread)
    t.after(async () => {
      await reloaded.close()
      own.remove()
    })
    for (const who of ['viewer', 'operator'] as const) assert.equal((await toolsOf(who, MODERN, reloaded)).length, 4)
    assert.equal((await reloaded.reload()).isApplied, true)
    for (const who of ['viewer', 'operator'] as const) {
      assert.deepEqual(await toolsOf(who, MODERN, reloaded), ['mail__grant', `mail__only_${who}`, 'mail__revoke'])
      assert.equal(textOf(await reloaded.call(who, MODERN, `mail__only_${who}`)), `only_${who} of ${who}`)
      assert.match(textOf(await reloaded.call(who, MODERN, 'mail__whoami')), /is not available/)
    }
  })

  it('sends each user the instructions of their own instance', async () => {
    for (const who of ['viewer', 'operator'] as const) {
      await toolsOf(who, MODERN)
      const { result } = toAnswer(await gateway.ask(who, MODERN, 'server/discover'))
      assert.match(String(result?.['instructions']), new RegExp(`You are signed in as ${who}\\.`))
    }
  })

  it('has no tools for a caller without a user', async () => {
    assert.deepEqual(gateway.gate.catalog.of({ roles: ['admin'] }).snapshot, gateway.gate.catalog.snapshot())
  })

  it('shows people whose list it is, and another user’s only to approvers of their tenant', async (t) => {
    const people = [
      callerConfig('demo-reader', { user: 'reader' }, 'console'),
      callerConfig('demo-self', { user: 'viewer' }, 'console'),
      callerConfig('demo-tina', { user: 'tina', tenant: 'acme', roles: ['approver'] }, 'console'),
    ]
    const own = tempFolder()
    const shown = await start({ path: own.path }, { callers: [...CALLERS, ...people], pins: 'suspend' })
    t.after(async () => {
      await shown.close()
      own.remove()
    })
    const get = async (path: string, key = 'demo-console') => (await shown.api(path, { key })).body as Body
    const mailOf = ({ tools = [] }: Body) => tools.map(({ id }) => id).filter((id) => id.startsWith('mail:'))
    const unknown = await get('/api/tools?as=viewer')
    assert.deepEqual([mailOf(unknown), unknown.lists], [[], [{ server: 'mail', user: 'viewer', state: 'unknown' }]])
    // Looking starts no instance.
    assert.deepEqual(shown.servers()[0]?.instances?.users, [])
    const { error } = await get('/api/why?as=viewer&tool=mail:whoami')
    assert.match(error?.message ?? '', /the server "mail" has not listed for "viewer" yet/)
    for (const who of ['viewer', 'operator'] as const) await toolsOf(who, MODERN, shown)
    for (const key of ['demo-console', 'demo-self']) {
      const known = await get('/api/tools?as=viewer', key)
      assert.deepEqual(mailOf(known), ['mail:grant', 'mail:only_viewer', 'mail:revoke', 'mail:whoami'])
      assert.deepEqual(known.lists, [{ server: 'mail', user: 'viewer', state: 'known' }])
      const { list, outcome } = await get('/api/why?as=viewer&tool=mail:only_viewer', key)
      assert.deepEqual([list?.user, outcome], ['viewer', 'allow'])
    }
    const withheld = await get('/api/tools?as=viewer', 'demo-reader')
    assert.deepEqual([mailOf(withheld), withheld.lists], [[], [{ server: 'mail', state: 'withheld' }]])
    for (const id of [
      'mail:only_viewer',
      'mail:only_nobody',
      'resource:mail:notes:///viewer',
      'prompt:mail:hello_viewer',
    ])
      for (const path of ['why', 'tool'])
        assert.equal(
          (await get(`/api/${path}?as=viewer&tool=${encodeURIComponent(id)}`, 'demo-reader')).error?.code,
          'tool_unknown',
        )
    const pins = async (key: string) =>
      ((await get('/api/pins', key)).pins ?? []).flatMap(({ tool, status, users }) =>
        tool === 'mail:whoami' ? [`${status} ${users?.map(({ user }) => user).join()}`] : [],
      )
    assert.deepEqual((await pins('demo-console')).toSorted(), ['pinned viewer', 'suspended operator'])
    for (const key of ['demo-reader', 'demo-tina']) assert.deepEqual(await pins(key), [])
    assert.ok(!(await toolsOf('operator', MODERN, shown)).includes('mail__whoami'))
    const { hash } = ((await get('/api/pins')).pins ?? []).find(({ status }) => status === 'suspended') ?? {}
    const accepted = await shown.api('/api/pins/accept', { method: 'POST', body: { tool: 'mail:whoami', hash } })
    assert.equal(accepted.status, 200)
    for (const who of ['viewer', 'operator'] as const)
      assert.ok((await toolsOf(who, MODERN, shown)).includes('mail__whoami'))
    const { records = [] } = await get('/api/audit?event=tool_changed')
    assert.deepEqual(
      records.map(({ tool, reason }) => [tool, reason]),
      [['mail:whoami', 'tool_differs']],
    )
    assert.match(records[0]?.detail ?? '', /^only for "operator": /)
  })
})

interface Body {
  readonly tools?: readonly { readonly id: string }[]
  readonly lists?: unknown
  readonly list?: { readonly user?: string }
  readonly outcome?: string
  readonly pins?: readonly {
    readonly tool: string
    readonly status: string
    readonly hash: string
    readonly users?: readonly { readonly user: string }[]
  }[]
  readonly error?: { readonly code: string; readonly message: string }
  readonly records?: readonly { readonly tool: string; readonly reason: string; readonly detail: string }[]
}
