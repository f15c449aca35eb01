import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { systemClock } from '@toolgate/core/stores'
import { loadConfig, type OverviewBody } from '@toolgate/gateway'
import { parse } from 'yaml'
import { withBinaries } from './support/binaries.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { type OwnServer, startOwnServer } from './support/own-server.ts'
import { ownPostgres } from './support/own-stores.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN } from './support/rpc.ts'
import { httpServer, nodeServer } from './support/servers.ts'

/** The alerts of `deploy/`, asked of a Prometheus that scrapes gateways where the very things happen. */

const ALERTS = join(import.meta.dirname, '../deploy/prometheus/alerts.yml')
const MINUTE_MS = 60_000

interface Alerts {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}

interface Found {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [number, string]
}

const expressions = new Map(
  (parse(readFileSync(ALERTS, 'utf8')) as Alerts).groups.flatMap(({ rules }) =>
    rules.map(({ alert, expr }) => [alert, expr] as const),
  ),
)

withBinaries(['prometheus', 'postgres', 'initdb'], ({ prometheus: command, ...paths }) => {
  describe('the alerts, in a Prometheus', () => {
    const folder = tempFolder()
    const postgres = ownPostgres(paths)
    let work: RecordingServer
    let gateway: TestGateway
    let replica: TestGateway
    let prometheus: OwnServer

    before(async () => {
      work = await startRecordingServer(toolsOf(), { era: 'legacy' })
      // It is twenty minutes late, so that what has just happened has waited for long.
      const late = { ...systemClock, wallMs: () => systemClock.wallMs() - 20 * MINUTE_MS }
      gateway = await startTestGateway(
        {
          servers: [httpServer('work', work.url), nodeServer('gone', ['-e', 'process.exit(1)'])],
          policy: [
            {
              name: 'team',
              allow: ['*'],
              ask: ['work:pay'],
              deny: [
                { id: 'broken', match: 'work:read', input: 'input.missing.field == 1' },
                { id: 'trial', match: 'work:fail', mode: 'shadow' },
              ],
            },
          ],
          limits: ['work:limited:100/60'],
          state: { store: 'sqlite', path: join(folder.path, 'state.db') },
          audit: {
            store: 'sqlite',
            path: join(folder.path, 'audit.db'),
            mode: 'batched',
            checkpoints: { everyRecords: 1, path: join(folder.path, 'checkpoints') },
          },
        },
        undefined,
        late,
      )
      replica = await startTestGateway(loadConfig(writeReplica(folder.path, postgres.url)))
      prometheus = await startPrometheus(command, { gateway, replica })
      await until(async () => (await query('up == 1')).length === 2)
    })
    // Before their database is.
    after(async () => {
      await prometheus?.stop()
      await gateway?.close()
      await replica?.close()
      await work?.close()
      folder.remove()
    })

    const query = async (expr: string): Promise<readonly Found[]> => {
      const url = `http://127.0.0.1:${prometheus.port}/api/v1/query?query=${encodeURIComponent(expr)}`
      const { status, text } = await send(url, { method: 'GET' })
      assert.equal(status, 200, text)
      return (JSON.parse(text) as { data: { result: readonly Found[] } }).data.result
    }
    const ask = (alert: string) => query(expressions.get(alert) ?? assert.fail(alert))
    const rises = (alert: string, labels: Readonly<Record<string, string>> = {}) =>
      until(async () =>
        (await ask(alert)).some(({ metric }) => Object.entries(labels).every(([name, of]) => metric[name] === of)),
      )
    const isQuiet = async (alert: string, instance: string) =>
      assert.deepEqual(
        (await ask(alert)).filter(({ metric }) => metric['instance'] === instance),
        [],
        alert,
      )

    it('are quiet where nothing is wrong', async () => {
      for (const alert of expressions.keys()) await isQuiet(alert, 'replica')
      for (const alert of ['ToolgateStoreRefuses', 'ToolgateErrorsRise', 'ToolgatePinChanged', 'ToolgateApprovalsWait'])
        await isQuiet(alert, 'gateway')
    })

    it('rise with errors: an isError of a server is one, as in the overview', async () => {
      await gateway.call('admin', MODERN, 'work__limited')
      // A first failure is a series without a sample before.
      await until(async () => {
        await gateway.call('admin', MODERN, 'work__fail')
        return (await ask('ToolgateErrorsRise')).some(({ metric }) => metric['instance'] === 'gateway')
      })
    })

    it('rise when a server is down, a condition fails, or a definition changes', async () => {
      await rises('ToolgateServerDown', { server: 'gone' })
      await gateway.call('admin', MODERN, 'work__read')
      await rises('ToolgatePolicyFails', { instance: 'gateway' })
      work.setTools(toolsOf('Does something else.'))
      await rises('ToolgatePinChanged', { instance: 'gateway' })
    })

    it('rise when a call has waited for a person for ten minutes, and when the checkpoints are gone', async () => {
      await gateway.call('admin', MODERN, 'work__fail')
      await gateway.call('admin', MODERN, 'work__pay')
      await rises('ToolgateApprovalsWait', { instance: 'gateway' })
      rmSync(join(folder.path, 'checkpoints'), { recursive: true })
      await rises('ToolgateAuditUnsigned', { code: 'checkpoints_missing' })
    })

    it('have the figures of the overview', async () => {
      const { tools, denied, waiting, lists, servers } = (await gateway.api('/api/overview?period=1h'))
        .body as OverviewBody
      const sums = async (expr: string, label: string) =>
        Object.fromEntries((await query(expr)).map(({ metric, value }) => [metric[label], Number(value[1])]))
      const wanted = (status: 'done' | 'failed' | 'refused') =>
        Object.fromEntries(
          tools.flatMap(({ tool = '_unknown', outcomes }) => (outcomes[status] > 0 ? [[tool, outcomes[status]]] : [])),
        )
      for (const status of ['done', 'failed', 'refused'] as const)
        await until(async () => {
          const found = await sums(
            `sum by (tool) (toolgate_tool_calls_total{instance="gateway",status="${status}"})`,
            'tool',
          )
          return same(found, wanted(status))
        })
      const work1 = servers.find(({ name }) => name === 'work')
      assert.deepEqual(
        await sums('sum by (status) (toolgate_server_calls_total{server="work"})', 'status'),
        Object.fromEntries(Object.entries(work1?.outcomes ?? {}).filter(([, count]) => count > 0)),
      )
      assert.deepEqual(
        await sums('sum by (tool) (toolgate_denied_calls_total)', 'tool'),
        Object.fromEntries(denied.map(({ tool = '_unknown', count }) => [tool, count])),
      )
      const ran = await sums('sum by (tool) (toolgate_tool_call_duration_seconds_count)', 'tool')
      for (const { tool = '', outcomes } of tools) assert.equal(ran[tool] ?? 0, outcomes.done + outcomes.failed, tool)
      assert.deepEqual(await sums('toolgate_pending_approvals{instance="gateway"}', 'instance'), {
        gateway: waiting.count,
      })
      assert.deepEqual(
        await sums('toolgate_list_tokens{instance="gateway"}', 'user'),
        Object.fromEntries(lists.map(({ user, tokens }) => [user, tokens])),
      )
      assert.deepEqual(await sums('toolgate_clause_hits_total{instance="gateway",shadow="true"}', 'clause'), {
        'team#trial': wanted('failed')['work:fail'],
      })
      const states = new Map(servers.map(({ name, status }) => [name, status]))
      assert.deepEqual(await sums('toolgate_server_up{instance="gateway"}', 'server'), {
        work: Number(states.get('work') === 'ready'),
        gone: Number(states.get('gone') === 'ready'),
      })
    })

    it('rise when a store refuses', async () => {
      const lock = new DatabaseSync(join(folder.path, 'state.db'))
      lock.exec('BEGIN EXCLUSIVE')
      try {
        const answer = gateway.call('admin', MODERN, 'work__limited')
        await answer
        await rises('ToolgateStoreRefuses', { reason: 'store_failed' })
      } finally {
        lock.exec('ROLLBACK')
        lock.close()
      }
    })

    it('rise when a replica does not hear from its database', async (t) => {
      const resume = postgres.pause(t)
      await rises('ToolgateReplicaLags', { instance: 'replica' })
      await rises('ToolgateReplicaRefuses', { instance: 'replica' })
      resume()
      await until(async () => (await ask('ToolgateReplicaRefuses')).length === 0)
    })

    it('rise when a gateway does not answer', async () => {
      await gateway.close()
      await rises('ToolgateDown', { instance: 'gateway' })
    })
  })
})

function toolsOf(description = 'Does something.') {
  const run = () => ({ content: [{ type: 'text', text: 'no' }], isError: true })
  return [{ name: 'pay' }, { name: 'read' }, { name: 'fail', run }, { name: 'limited' }, { name: 'other', description }]
}

function same(found: object, wanted: object): boolean {
  const sorted = (of: object) => JSON.stringify(Object.entries(of).toSorted())
  return sorted(found) === sorted(wanted)
}

function writeReplica(folder: string, url: string): string {
  const file = join(folder, 'replica.yaml')
  const key = `{ key: ${KEYS.console}, for: console, user: owner }`
  const lines = ['listen: { port: 0 }', 'servers: {}', `callers: [${key}]`, 'policy: [{ allow: ["*"] }]']
  writeFileSync(file, [...lines, 'audit: { store: postgres }', `stores: { postgres: "${url}" }`].join('\n'))
  return file
}

/** The metrics of a replica whose database is silent take some seconds. */
const EVERY = { gateway: '1s', replica: '5s' } as const

/** Starts a Prometheus that looks at gateways more often than one would. */
function startPrometheus(
  command: string,
  gateways: Readonly<Record<keyof typeof EVERY, TestGateway>>,
): Promise<OwnServer> {
  const config = {
    scrape_configs: (['gateway', 'replica'] as const).map((instance) => ({
      job_name: instance,
      scrape_timeout: EVERY[instance],
      scrape_interval: EVERY[instance],
      authorization: { credentials: KEYS.console },
      static_configs: [{ targets: [`127.0.0.1:${gateways[instance].port}`], labels: { instance, job: 'toolgate' } }],
    })),
  }
  return startOwnServer({
    command,
    prepare: ({ folder }) => writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config)),
    args: ({ port, folder }) => [
      '--config.file=prometheus.yml',
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    isReady: async ({ port }) =>
      (await send(`http://127.0.0.1:${port}/-/ready`, { method: 'GET' }).catch(() => undefined))?.status === 200,
  })
}
