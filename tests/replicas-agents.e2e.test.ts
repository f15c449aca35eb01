import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, afterEach, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { AgentCallBody, ApprovalsBody } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { FLEET_PROGRAMS, ownFleet } from './support/fleet.ts'
import { until } from './support/gateway.ts'
import { Witness } from './support/items-witness.ts'
import { KEYS, type Who } from './support/keys.ts'
import { hostEarlier, hostModern, type HostedServer } from './support/mcp-host.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { type Era, MODERN, type Params, textOf } from './support/rpc.ts'
import { startTaskServer, type TaskServer } from './support/task-server.ts'

/** Agents at three replicas behind HAProxy: each of their requests arrives at another one. */

const LEGACY = '2025-11-25'
const OWN = join(import.meta.dirname, 'support/reload-server.js')
const TASKS = 'io.modelcontextprotocol/tasks'
const CAPABLE = {
  _meta: {
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} }, extensions: { [TASKS]: {} } },
  },
}
const ERAS = ['legacy', 'modern'] as const

withBinaries(FLEET_PROGRAMS, (paths) => {
  describe('agents at replicas behind a load balancer without stickiness', () => {
    let recording: RecordingServer
    const workers = new Map<string, TaskServer>()
    const hosts: HostedServer[] = []
    const witnesses = ERAS.map(() => new Witness())
    const closing: (() => unknown)[] = []
    const stopped: string[] = []
    const fleet = ownFleet(paths, async () => {
      const waits = (_args: object, { signal }: { readonly signal: AbortSignal }) =>
        new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => {
            stopped.push('shared')
            reject(new Error('stopped'))
          })
        })
      const tools = [{ name: 'pay' }, { name: 'wait', run: waits }]
      recording = await startRecordingServer(tools, { era: 'modern' })
      for (const era of ERAS) workers.set(era, await startTaskServer(era))
      for (const [i, host] of [hostEarlier, hostModern].entries()) {
        const witness = witnesses[i] as Witness
        witness.resources = [{ uri: `${ERAS[i]}:one`, name: 'one' }]
        witness.templates = []
        witness.prompts = []
        hosts.push(await host(witness.answer))
      }
      const [earlier, modern] = hosts
      return `
servers:
  shared: { url: "${recording.url}", era: modern, per: shared }
  mine: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(OWN)}], per: user }
  legacywork: { url: "${workers.get('legacy')?.url}", per: shared }
  modernwork: { url: "${workers.get('modern')?.url}", per: shared }
  earlier: { url: "${earlier?.url}", per: shared, offers: [resources, prompts] }
  modern: { url: "${modern?.url}", per: shared, offers: [resources, prompts] }
callers:
  - { key: ${KEYS.viewer}, user: viewer }
  - { key: ${KEYS.operator}, user: operator }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
policy: [{ allow: ["*", "resource:*:*", "prompt:*:*"], ask: ["shared:pay"] }]
pins: off
`
    })
    afterEach(async () => {
      for (const close of closing.splice(0).toReversed()) await close()
    })
    after(() => Promise.all([recording, ...workers.values(), ...hosts].map((server) => server?.close())))

    const ask = (era: Era, method: string, params: Params = {}, who: Who = 'viewer') =>
      fleet.ask(who, era, method, params)
    const statusOf = async (era: Era, taskId: string) =>
      (await ask(era, 'tasks/get', { taskId, ...(era === MODERN && CAPABLE) })).result?.['status']

    for (const server of ERAS)
      for (const era of server === 'legacy' ? ([LEGACY, MODERN] as const) : ([MODERN] as const)) {
        const begin = async () => {
          const takes = era === LEGACY ? { task: { ttl: 60_000 } } : CAPABLE
          const answer = await ask(era, 'tools/call', { name: `${server}work__work`, arguments: {}, ...takes })
          const task = (era === LEGACY ? answer.result?.['task'] : answer.result) as { taskId?: string } | undefined
          assert.ok(task?.taskId, JSON.stringify(answer))
          return task.taskId
        }

        it(`follow tasks of a ${server} server that another has begun (${era})`, async () => {
          const taskId = await begin()
          for (const _ of fleet.gateways) assert.equal(await statusOf(era, taskId), 'working')
          workers.get(server)?.finish('all done')
          await until(async () => (await statusOf(era, taskId)) === 'completed')
          for (const gateway of fleet.gateways) {
            const method = era === LEGACY ? 'tasks/result' : 'tasks/get'
            const { result } = await fleet.ask(
              'viewer',
              era,
              method,
              { taskId, ...(era === MODERN && CAPABLE) },
              gateway,
            )
            const content =
              era === LEGACY ? result?.content : (result?.['result'] as { content?: unknown } | undefined)?.content
            assert.deepEqual(content, [{ type: 'text', text: 'all done' }])
          }
          // Of nobody else, wherever it is asked.
          for (const gateway of fleet.gateways) {
            const params = { taskId, ...(era === MODERN && CAPABLE) }
            assert.ok((await fleet.ask('operator', era, 'tasks/get', params, gateway)).error)
          }
        })

        it(`cancel tasks of a ${server} server that another follows (${era})`, async () => {
          const taskId = await begin()
          const known = workers.get(server)?.tasks.at(-1)
          // The one that follows it is not the one that is asked.
          const [first, second] = fleet.gateways
          const params = { taskId, ...(era === MODERN && CAPABLE) }
          assert.equal((await fleet.ask('viewer', era, 'tasks/cancel', params, first)).error, undefined)
          await until(() => known?.status === 'cancelled')
          assert.equal((await fleet.ask('viewer', era, 'tasks/get', params, second)).result?.['status'], 'cancelled')
        })
      }

    it('end the task of a call that waits for a person, whoever decides and wherever', async () => {
      for (const [at, gateway] of fleet.gateways.entries()) {
        const params = { name: 'shared__pay', arguments: { at }, ...CAPABLE }
        const begun = (await fleet.ask('viewer', MODERN, 'tools/call', params, gateway)).result
        const taskId = String(begun?.['taskId'])
        const { approvals } = (await fleet.http('/api/approvals?status=pending')).json() as ApprovalsBody
        const decider = fleet.gateways[(at + 1) % fleet.gateways.length]
        const body = { decision: 'approve' }
        assert.equal((await fleet.http(`/api/approvals/${approvals[0]?.id}`, { body }, decider)).status, 200)
        await until(async () => (await statusOf(MODERN, taskId)) === 'completed')
      }
      assert.deepEqual(
        recording.calls('pay').map(({ params }) => params['arguments']),
        fleet.gateways.map((_, at) => ({ at })),
      )
    })

    const options = { requestInit: { headers: { authorization: `Bearer ${KEYS.viewer}` } } }
    const connectNew = async (to = fleet.url) => {
      const heard: string[] = []
      const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: MODERN } } })
      client.setNotificationHandler('notifications/resources/list_changed', () => void heard.push('list'))
      client.setNotificationHandler('notifications/prompts/list_changed', () => void heard.push('prompts'))
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri))
      await client.connect(new StreamableHTTPClientTransport(new URL(`${to}/mcp`), options))
      closing.push(() => client.close())
      return { client, heard }
    }
    const connectOld = async () => {
      const heard: string[] = []
      const client = new ClientV1({ name: 'test', version: '1' })
      client.setNotificationHandler(ResourceListChangedNotificationSchema, () => void heard.push('list'))
      client.setNotificationHandler(PromptListChangedNotificationSchema, () => void heard.push('prompts'))
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void heard.push(params.uri))
      const transport = new TransportV1(new URL(`${fleet.url}/mcp`), options)
      await client.connect(transport as Parameters<ClientV1['connect']>[0])
      closing.push(() => client.close())
      return { client, heard }
    }

    it('hear of changes at servers of both eras, with clients of both, at each replica', async () => {
      const uris = ERAS.map((era) => `${era}:one`)
      // Three clients of each era, whose streams are at different replicas.
      const newer = await Promise.all(fleet.gateways.map(() => connectNew()))
      const older = await Promise.all(fleet.gateways.map(() => connectOld()))
      for (const { client } of newer) {
        const filter = { resourcesListChanged: true, promptsListChanged: true, resourceSubscriptions: uris }
        const listening = await client.listen(filter)
        assert.deepEqual(listening.honoredFilter, filter)
        closing.push(() => listening.close())
      }
      for (const { client } of older) for (const uri of uris) await client.subscribeResource({ uri })
      const all = [...newer, ...older]
      await until(() => {
        for (const [i, uri] of uris.entries()) hosts[i]?.updated(uri)
        return all.every(({ heard }) => uris.every((uri) => heard.includes(uri)))
      })
      for (const { client } of older) await client.listResources()
      for (const [i, witness] of witnesses.entries()) {
        for (const { heard } of all) heard.length = 0
        witness.resources = [...witness.resources, { uri: `${ERAS[i]}:two`, name: 'two' }]
        hosts[i]?.change('resources')
        await until(() => all.every(({ heard }) => heard.includes('list')))
        for (const { client } of older) await client.listPrompts()
        witness.prompts = [...witness.prompts, { name: `${ERAS[i]}-greet` }]
        hosts[i]?.change('prompts')
        await until(() => all.every(({ heard }) => heard.includes('prompts')))
      }
    })

    it('cancel a call by going away, at a shared server and in the instance of a user', async () => {
      for (const gateway of fleet.gateways) {
        const { client } = await connectNew(gateway.url)
        const stop = new AbortController()
        const known = stopped.length
        const before = recording.calls('wait').length
        const calling = client.callTool({ name: 'shared__wait', arguments: {} }, { signal: stop.signal })
        calling.catch(() => undefined)
        await until(() => recording.calls('wait').length > before)
        stop.abort()
        await until(() => stopped.length > known)
      }
      // The home of the user runs one call, and must be told that its client went away from another replica.
      const records = async () => {
        const answer = await fleet.http('/api/audit?tool=mine:wait&event=tool_abandoned')
        return (answer.json() as { records: readonly unknown[] }).records.length
      }
      for (const [at, gateway] of fleet.gateways.entries()) {
        const { client } = await connectNew(gateway.url)
        const stop = new AbortController()
        const file = join(import.meta.dirname, 'never')
        const calling = client.callTool({ name: 'mine__wait', arguments: { file } }, { signal: stop.signal })
        calling.catch(() => undefined)
        await until(async () => {
          const answer = await fleet.http('/api/audit?tool=mine:wait&event=tool_call')
          return (answer.json() as { records: readonly unknown[] }).records.length === at + 1
        })
        stop.abort()
        await until(async () => (await records()) === at + 1)
      }
    })

    describe('/api/call', () => {
      const call = async (
        body: object,
        headers: Readonly<Record<string, string>> = {},
        to?: { readonly url: string },
      ) => fleet.http('/api/call', { headers: { authorization: `Bearer ${KEYS.viewer}`, ...headers }, body }, to)

      it('runs in the one instance of the user, as calls over MCP do', async () => {
        const pids = new Set<string | undefined>()
        for (const gateway of [...fleet.gateways, ...fleet.gateways]) {
          const answer = await call({ tool: 'mine:pid', input: {} }, {}, gateway)
          const { status, text } = answer.json() as AgentCallBody & { text?: string }
          assert.equal(status, 'done', answer.text)
          pids.add(text)
        }
        pids.add(textOf(await ask(MODERN, 'tools/call', { name: 'mine__pid', arguments: {} })))
        assert.equal(pids.size, 1)
      })

      it('says what is wrong with a request as ever, and runs nothing for a forged forwarding', async () => {
        for (const gateway of fleet.gateways) {
          const codeOf = async (answer: Promise<{ status: number; json(): unknown }>) => {
            const { status, json } = await answer
            return [status, (json() as { error?: { code: string } }).error?.code]
          }
          const body = { tool: 'mine:pid', input: {} }
          const forged = { 'toolgate-forwarded': `10.0.0.1 ${'A'.repeat(43)}` }
          assert.deepEqual(await codeOf(call(body, forged, gateway)), [403, 'forward_refused'])
          assert.deepEqual(await codeOf(call({ toll: 'mine:pid' }, {}, gateway)), [400, 'body_invalid'])
          const wrong = { authorization: 'Bearer nobody' }
          assert.deepEqual(await codeOf(call(body, wrong, gateway)), [401, 'unauthenticated'])
          const huge = { tool: 'mine:pid', input: { text: 'x'.repeat(5_000_000) } }
          assert.deepEqual(await codeOf(call(huge, {}, gateway)), [413, 'body_too_large'])
        }
      })

      it('begins anew elsewhere when the home of the user stops', async () => {
        const before = (await call({ tool: 'mine:pid', input: {} })).json() as { text?: string }
        const work = { isDone: false }
        const failed: string[] = []
        const calling = (async () => {
          while (!work.isDone) {
            const answer = await call({ tool: 'mine:echo', input: {} })
            const { status } = answer.json() as { status?: string }
            if (status !== 'done') failed.push(answer.text)
          }
        })()
        calling.catch(() => undefined)
        try {
          for (const at of fleet.gateways.keys()) await fleet.replace(at)
        } finally {
          work.isDone = true
        }
        await calling
        assert.deepEqual(failed, [])
        const now = (await call({ tool: 'mine:pid', input: {} })).json() as { text?: string }
        assert.notEqual(now.text, before.text)
      })
    })
  })
})
