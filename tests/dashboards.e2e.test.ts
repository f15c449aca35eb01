import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parse } from 'yaml'
import { loadConfig } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { createAuthority } from './support/certificates.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { ownPostgres } from './support/own-stores.ts'
import { MODERN } from './support/rpc.ts'
import { httpServer, nodeServer } from './support/servers.ts'

/** The dashboard and the alerts of `deploy/`: every metric, label and value that they name is in a real answer. */

const DEPLOY = join(import.meta.dirname, '../deploy')
const ALERTS = join(DEPLOY, 'prometheus/alerts.yml')
const SLOW = join(import.meta.dirname, 'support/slow-server.js')

const ISSUER = {
  issuer: 'https://issuer.invalid',
  name: 'corp',
  audiences: [],
  algorithms: ['RS256'],
  clockSkewMs: 30_000,
  claims: { user: 'sub' },
  users: new Map<string, string>(),
}

interface Alerts {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[]
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] }
}

const rules = (parse(readFileSync(ALERTS, 'utf8')) as Alerts).groups.flatMap((group) => group.rules)
const board = JSON.parse(readFileSync(join(DEPLOY, 'grafana/toolgate.json'), 'utf8')) as Dashboard

/** Every expression, by where it is. */
const expressions: readonly (readonly [string, string])[] = [
  ...rules.map(({ alert, expr }) => [`the alert ${alert}`, expr] as const),
  ...board.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [`the panel "${title}"`, expr] as const)),
  ...board.annotations.list.map(({ name, expr }) => [`the annotation "${name}"`, expr] as const),
]

/** Prometheus adds these to each series. */
const OF_PROMETHEUS: ReadonlySet<string> = new Set(['instance', 'job'])

withBinaries(['openssl', 'promtool', 'postgres', 'initdb'], ({ openssl, promtool, ...paths }) => {
  describe('the dashboard and the alerts', () => {
    const folder = tempFolder()
    const postgres = ownPostgres(paths)
    let replica: TestGateway
    let upstream: RecordingServer
    let gateway: TestGateway
    /** The values of each label, by metric. */
    let series: ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>
    let text: string

    before(async () => {
      const tls = createAuthority(openssl, folder.path).issue('front')
      upstream = await startRecordingServer([{ name: 'pay' }, { name: 'read' }, failing])
      gateway = await startTestGateway({
        listen: { host: '127.0.0.1', port: 0, tls },
        publicUrl: 'https://localhost',
        servers: [httpServer('up', upstream.url), nodeServer('slow', [SLOW], { per: 'user' })],
        groups: [{ name: 'money', tools: ['up:pay'], visibility: 'always', dependsOn: [], availableWhen: [] }],
        oauth: { issuers: [ISSUER], scopes: [], stepUp: [] },
        policy: [{ allow: ['*'], ask: ['up:pay'], deny: ['slow:long', { match: 'up:read', mode: 'shadow' }] }],
        limits: ['up:read:1/60'],
        audit: {
          store: 'sqlite',
          path: join(folder.path, 'audit.db'),
          mode: 'batched',
          checkpoints: { everyRecords: 1 },
        },
      })
      for (const tool of ['up__read', 'up__read', 'up__pay', 'slow__echo', 'slow__long', 'up__fail', 'nothing'])
        await gateway.call('admin', MODERN, tool)
      const token = [{ alg: 'RS256' }, { iss: 'https://elsewhere.invalid' }, {}].map((part) =>
        Buffer.from(JSON.stringify(part)).toString('base64url'),
      )
      await gateway.ask('admin', MODERN, 'tools/list', {}, { headers: { authorization: `Bearer ${token.join('.')}` } })
      const headers = { authorization: `Bearer ${KEYS.console}` }
      await until(async () => {
        ;({ text } = await send(`${gateway.url}/metrics`, { method: 'GET', headers }))
        return text.includes('toolgate_audit_signed_seconds')
      })
      replica = await startTestGateway(loadConfig(writeReplica(folder.path, postgres.url)))
      const shared = await send(`${replica.url}/metrics`, { method: 'GET', headers })
      series = readSeries(text + shared.text)
    })

    after(async () => {
      await gateway?.close()
      await replica?.close()
      await upstream?.close()
      folder.remove()
    })

    it('name metrics, labels and values that there are', () => {
      assert.ok(expressions.length > 30, `${expressions.length} expressions`)
      const wrong = expressions.flatMap(([at, expr]) => findUnknown(expr, series).map((problem) => `${at}: ${problem}`))
      assert.deepEqual(wrong, [])
    })

    it('would be found to name others', () => {
      const problems = (expr: string) => findUnknown(expr, series)
      assert.deepEqual(problems('rate(toolgate_call_total[5m])'), ['toolgate_call_total is no metric'])
      assert.deepEqual(problems('toolgate_calls_total{statuz="done"}'), ['toolgate_calls_total has no label statuz'])
      assert.deepEqual(problems('toolgate_calls_total{status=~"done|faild"}'), ['status is never faild'])
      assert.deepEqual(problems('sum by (tool) (toolgate_calls_total)'), ['nothing has the label tool'])
    })

    it('answer in a format that Prometheus reads without a complaint', () => {
      const { status, stdout, stderr } = spawnSync(promtool, ['check', 'metrics'], { input: text, encoding: 'utf8' })
      assert.deepEqual([status, stdout, stderr], [0, '', ''])
    })

    it('have alerts that promtool accepts, each with a test that passes', () => {
      const file = join(DEPLOY, 'prometheus/alerts.test.yml')
      for (const args of [
        ['check', 'rules', ALERTS],
        ['test', 'rules', file],
      ]) {
        const { status, stdout, stderr } = spawnSync(promtool, args, { encoding: 'utf8' })
        assert.equal(status, 0, stdout + stderr)
      }
      const tested = readFileSync(file, 'utf8')
      assert.deepEqual(
        rules.map(({ alert }) => alert).filter((name) => !tested.includes(`alertname: ${name}\n`)),
        [],
      )
    })

    it('are explained on the page, alert by alert', () => {
      const page = readFileSync(join(DEPLOY, '../docs/guide/monitoring.md'), 'utf8')
      const explained = [...page.matchAll(/^\| `(Toolgate\w+)` \|/gm)].map(([, name]) => name)
      assert.deepEqual(
        explained,
        rules.map(({ alert }) => alert),
      )
    })
  })
})

function writeReplica(folder: string, url: string): string {
  const file = join(folder, 'replica.yaml')
  const key = `{ key: ${KEYS.console}, for: console, user: owner }`
  const lines = ['listen: { port: 0 }', 'servers: {}', `callers: [${key}]`, 'policy: [{ allow: ["*"] }]']
  writeFileSync(file, [...lines, 'audit: { store: postgres }', `stores: { postgres: "${url}" }`].join('\n'))
  return file
}

const failing = { name: 'fail', run: () => ({ content: [], isError: true }) }

function readSeries(text: string): Map<string, Map<string, Set<string>>> {
  const found = new Map<string, Map<string, Set<string>>>([['up', new Map()]])
  for (const [, name = '', labels = ''] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const values = found.get(name) ?? new Map<string, Set<string>>()
    found.set(name, values)
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      values.set(label, (values.get(label) ?? new Set()).add(value))
  }
  return found
}

/** Returns what an expression names and no answer has. */
function findUnknown(expr: string, series: ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>): string[] {
  const problems: string[] = []
  const labels = new Set(['le', ...OF_PROMETHEUS])
  for (const [, name = '', matchers = ''] of expr.matchAll(
    /\b((?:toolgate|process|nodejs)_\w+|up\b)(?:\{([^}]*)\})?/g,
  )) {
    const has = series.get(name)
    if (!has) problems.push(`${name} is no metric`)
    for (const label of has?.keys() ?? []) labels.add(label)
    for (const [, label = '', value = ''] of matchers.matchAll(/(\w+)[=!]~?"([^"]*)"/g)) {
      if (!has || OF_PROMETHEUS.has(label)) continue
      if (!has.has(label)) problems.push(`${name} has no label ${label}`)
      else for (const one of value.split('|')) if (!has.get(label)?.has(one)) problems.push(`${label} is never ${one}`)
    }
  }
  for (const [, list = ''] of expr.matchAll(/\bby \(([^)]*)\)/g))
    for (const label of list.split(',').map((one) => one.trim()))
      if (!labels.has(label)) problems.push(`nothing has the label ${label}`)
  return problems
}
