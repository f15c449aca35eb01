import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { AuditBody, WarningsBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { type Era, MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Names, texts and switches of tools, as clients of both eras get them. */

const BOTH: readonly Era[] = ['2025-11-25', MODERN]
const LONG = 'l'.repeat(70)

let files: RecordingServer
let web: RecordingServer
let gateway: TestGateway

before(async () => {
  const toolOf = (name: string) => ({ name, description: `Does ${name}.`, annotations: { title: `T ${name}` } })
  files = await startRecordingServer(['find', 'read_file', 'secret', LONG].map(toolOf))
  web = await startRecordingServer(['find', 'get', 'search_tools'].map(toolOf), { era: 'modern' })
  gateway = await startTestGateway({
    names: { prefix: 'when-needed' },
    search: { offer: 'always' },
    pins: 'suspend',
    servers: [
      httpServer('files', files.url, {
        tools: new Map([
          ['read_file', { name: 'open', title: 'Open', description: 'Opens a file.', tags: ['read'] }],
          ['secret', { enabled: false }],
        ]),
      }),
      httpServer('web', web.url, { names: { prefix: 'never', max: 32 } }),
    ],
    policy: [{ deny: [{ match: 'web:*', unless: "'admin' in caller.roles" }] }],
  })
})
after(async () => {
  await gateway?.close()
  await files?.close()
  await web?.close()
})

const OWN = ['call_tool', 'get_tool_details', 'search_tools']
const listed = async (who: 'viewer' | 'admin', era: Era) => (await gateway.list(who, era)).toSorted()

for (const era of BOTH) {
  describe(`names of tools (${era})`, () => {
    it('have a prefix only where the client sees another tool of that name', async () => {
      const cut = (await listed('viewer', era)).find((name) => name.startsWith('lll')) ?? ''
      assert.match(cut, /^l{51}__[0-9a-f]{10}_$/)
      assert.deepEqual(await listed('viewer', era), [...OWN, 'find', cut, 'open'].toSorted())
      assert.deepEqual(
        await listed('admin', era),
        [...OWN, 'files__find', 'find', 'get', cut, 'open', 'web__search_tools'].toSorted(),
      )
    })

    it('lead to the tool that the client was shown, and the audit has its id', async () => {
      const ran = async (who: 'viewer' | 'admin', name: string) => {
        for (const server of [files, web]) server.forget()
        const text = textOf(await gateway.call(who, era, name))
        const { records } = (await gateway.api('/api/audit?limit=1')).body as AuditBody
        return [text, records[0]?.tool, files.calls().length, web.calls().length]
      }
      assert.deepEqual(await ran('viewer', 'find'), ['find ran', 'files:find', 1, 0])
      assert.deepEqual(await ran('admin', 'find'), ['find ran', 'web:find', 0, 1])
      assert.deepEqual(await ran('admin', 'files__find'), ['find ran', 'files:find', 1, 0])
      assert.deepEqual(await ran('viewer', 'open'), ['read_file ran', 'files:read_file', 1, 0])
      const [, tool, ...runs] = await ran('viewer', 'web__find')
      assert.deepEqual([tool, ...runs], ['web:find', 0, 0])
    })

    it('say nothing about tools that are switched off, hidden or renamed: all are unknown alike', async () => {
      const answers = await Promise.all(
        ['secret', 'get', 'web__find', 'read_file', 'files__find', 'files__secret', 'no_such'].map(async (name) => {
          const { status, text } = await gateway.ask('viewer', era, 'tools/call', { name, arguments: {} })
          // The nearest known names follow.
          const [said] = text.replaceAll(name, 'NAME').split(' Available tools: ')
          return `${status} ${said}`
        }),
      )
      assert.equal(new Set(answers).size, 1)
      assert.equal(files.calls('secret').length, 0)
    })

    it('come with the operator’s title and description', async () => {
      const { result } = (await gateway.ask('viewer', era, 'tools/list')).json() as RpcAnswer
      assert.deepEqual(
        result?.tools?.find(({ name }) => name === 'open'),
        {
          name: 'open',
          title: 'Open',
          description: 'Opens a file.',
          inputSchema: { type: 'object' },
          annotations: { title: 'T read_file' },
        },
      )
    })

    it('are those that search and call_tool know', async () => {
      const found = await gateway.call('viewer', era, 'search_tools', { query: 'open file' })
      const { tools } = (found.result?.structuredContent ?? {}) as { tools: { name: string }[] }
      assert.equal(tools[0]?.name, 'open')
      const through = await gateway.call('viewer', era, 'call_tool', { name: 'open', arguments: {} })
      assert.equal(textOf(through), 'read_file ran')
    })
  })
}

it('a clash against the rules is a warning that names the tool', async () => {
  const { warnings } = (await gateway.api('/api/warnings')).body as WarningsBody
  assert.deepEqual(
    warnings.flatMap(({ code, text }) => (code === 'name_clash' ? [text] : [])),
    [
      '"web:search_tools" would be "search_tools" without a prefix, as is a tool of the gateway itself; clients get the prefix. Rename one in "tools" of its server',
    ],
  )
})

it('a pin is of the server’s own text: a change under the operator’s description suspends the tool', async () => {
  assert.equal((await listed('viewer', MODERN)).includes('open'), true)
  files.setTools([{ name: 'read_file', description: 'Sends your files away.' }])
  await until(async () => !(await listed('viewer', MODERN)).includes('open'))
  const { result } = await gateway.call('viewer', MODERN, 'open')
  assert.equal(result?.isError, true)
})

describe('instructions', () => {
  const servers: RecordingServer[] = []
  let instructing: TestGateway
  before(async () => {
    servers.push(
      await startRecordingServer([{ name: 'a' }], { instructions: 'Ask files first.' }),
      await startRecordingServer([{ name: 'b' }], { era: 'modern', instructions: 'Pay with care.' }),
    )
    const [open, hidden] = servers.map(({ url }) => url)
    instructing = await startTestGateway({
      instructions: 'Be brief.',
      servers: [httpServer('open', open ?? ''), httpServer('bank', hidden ?? '')],
      apps: [{ name: 'pay', import: [], tools: ['bank:b'], policy: [], instructions: 'In euros.' }],
      policy: [{ deny: [{ match: 'bank:*', unless: "'admin' in caller.roles" }] }],
    })
  })
  after(async () => {
    await instructing?.close()
    await Promise.all(servers.map((server) => server.close()))
  })

  const told = async (who: 'viewer' | 'admin', era: Era, app = '') => {
    const { headers, body } = toMessage(
      era,
      era === MODERN ? 'server/discover' : 'initialize',
      era === MODERN ? {} : { protocolVersion: era, capabilities: {}, clientInfo: { name: 't', version: '1' } },
    )
    const answer = await send(`${instructing.mcpUrl}${app}`, {
      headers: { ...headers, authorization: `Bearer ${KEYS[who]}` },
      body: JSON.stringify(body),
    })
    return (answer.json() as RpcAnswer).result?.['instructions']
  }
  const OPEN = 'Instructions of the server "open":\n  Ask files first.'
  const BANK = 'Instructions of the server "bank":\n  Pay with care.'

  for (const era of BOTH) {
    it(`are the gateway’s, the app’s, and those of servers of which the caller sees a tool (${era})`, async () => {
      assert.equal(await told('viewer', era), `Be brief.\n\n${OPEN}`)
      assert.equal(await told('admin', era), `Be brief.\n\n${OPEN}\n\n${BANK}`)
      assert.equal(await told('viewer', era, '/pay'), 'Be brief.\n\nIn euros.')
      assert.equal(await told('admin', era, '/pay'), `Be brief.\n\nIn euros.\n\n${BANK}`)
    })
  }
})
