import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { StartedRunBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { callerConfig, CALLERS } from './support/keys.ts'
import { MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'
import { nodeServer } from './support/servers.ts'

const SAYING = ['--conditions=toolgate-source', join(import.meta.dirname, 'support/saying-server.ts')]
const HOST = 'host-key-of-the-runner'
const KEY = 'dev.toolgate/labels'
const TO = { to: 'bob@acme.example' }

const deny = [
  { match: 'open:send', when: "'private' in run.labels", message: 'after private' },
  { match: 'open:send', when: "'untrusted' in run.labels", message: 'after untrusted' },
  { match: 'open:send', when: "'other' in run.labels", message: 'after other' },
]
const fromTrusted = {
  match: 'open:log',
  input: "!(origin(input.to) in ['user', 'trusted'])",
  message: 'not from there',
}

for (const era of ['2025-11-25', MODERN] as const)
  describe(`labels that a server raises in its results, ${era}`, () => {
    let gateway: TestGateway
    before(async () => {
      const may = { elicit: false, sample: false, roots: false, log: false, open: [] }
      gateway = await startTestGateway({
        servers: [
          nodeServer('open', SAYING, { accepts: ['private', 'untrusted'], may }),
          nodeServer('shut', SAYING, { may }),
        ],
        callers: [...CALLERS, callerConfig(HOST, { user: 'runner' }, 'host')],
        labels: { trusted: ['open:*', 'shut:*'], private: [], other: [] },
        policy: [{ deny }, { deny: [fromTrusted] }],
      })
    })
    after(() => gateway.close())

    /** Returns the text of each call of one run. */
    async function inRun(...calls: readonly (readonly [tool: string, args: object])[]): Promise<readonly string[]> {
      const started = await gateway.api('/api/runs', { key: HOST, method: 'POST', body: { user: 'viewer' } })
      const { token } = started.body as StartedRunBody
      const texts: string[] = []
      for (const [name, args] of calls) {
        const { headers, body } = toMessage(era, 'tools/call', { name, arguments: args })
        const answer = await send(gateway.mcpUrl, {
          headers: { ...headers, authorization: `Bearer ${token}` },
          body: JSON.stringify(body),
        })
        texts.push(textOf(answer.json() as RpcAnswer))
      }
      return texts
    }
    const labelled = (labels: unknown, more: object = {}) => ({ _meta: { [KEY]: labels }, ...more })

    it('rise where its entry accepts them, and hold for the rest of the run', async () => {
      const [none, raised, refused] = await inRun(
        ['open__send', {}],
        ['open__label', labelled(['private'])],
        ['open__send', {}],
      )
      assert.deepEqual([none, raised], ['ok', 'ok'])
      assert.match(refused ?? '', /after private/)
      assert.deepEqual(await inRun(['open__send', {}]), ['ok'], 'another run')
    })

    it('rise with a result that reports an error', async () => {
      const [, refused] = await inRun(['open__label', labelled(['private'], { isError: true })], ['open__send', {}])
      assert.match(refused ?? '', /after private/)
    })

    it('do not rise where its entry does not name them, and never make an output trusted', async () => {
      for (const call of [
        ['shut__label', labelled(['private', 'untrusted'])],
        ['open__label', labelled(['other', 'trusted', 'Private'])],
        ['open__label', labelled([])],
        ['open__label', { _meta: { labels: ['private'] } }],
      ] as const)
        assert.deepEqual(await inRun(call, ['open__send', {}]), ['ok', 'ok'])
    })

    it('are all that the entry accepts where they cannot be read', async () => {
      const [, refused] = await inRun(['open__label', labelled('private')], ['open__send', {}])
      assert.match(refused ?? '', /after private/)
    })

    it('make the output of a trusted tool untrusted', async () => {
      for (const tool of ['open__contact', 'shut__doubtful_contact']) {
        const [, trusted] = await inRun([tool, {}], ['open__log', TO])
        assert.equal(trusted, 'ok', tool)
      }
      const [, untrusted] = await inRun(['open__doubtful_contact', {}], ['open__log', TO])
      assert.match(untrusted ?? '', /not from there/)
      const [, sent] = await inRun(['open__label', labelled(['untrusted'])], ['open__send', {}])
      assert.match(sent ?? '', /after untrusted/)
    })
  })
