import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { Caller } from '@toolgate/core'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { checkpointsPath } from '@toolgate/stores/verify'
import type { AuditEvidenceBody } from '../model/rows.ts'
import type { AuditConfig, GatewayConfig } from './config.ts'
import type { LogLine } from '../model/log-line.ts'
import { type RunningGateway, startGateway } from '../compose/gateway.ts'

const KEY = 'console-key'

const callerOf = (key: string, caller: Caller): GatewayConfig['callers'][number] => ({
  keyHash: createHash('sha256').update(key).digest(),
  for: 'console',
  caller,
})

async function start(
  t: TestContext,
  audit: AuditConfig,
  callers = [callerOf(KEY, { user: 'ada' })],
): Promise<{ gateway: RunningGateway; log: LogLine[] }> {
  const log: LogLine[] = []
  const config: GatewayConfig = {
    file: '/test/toolgate.yaml',
    listen: { host: '127.0.0.1', port: 0 },
    servers: [],
    callers,
    groups: [],
    policy: [{ allow: ['*'] }],
    limits: [],
    audit,
    state: { store: 'memory' },
  }
  const gateway = await startGateway(config, { log: (line) => log.push(line) })
  t.after(() => gateway.close())
  return { gateway, log }
}

async function evidenceOf({ url }: RunningGateway): Promise<AuditEvidenceBody> {
  const answer = await fetch(`${url}/api/audit/evidence`, { headers: { authorization: `Bearer ${KEY}` } })
  assert.equal(answer.status, 200)
  return (await answer.json()) as AuditEvidenceBody
}

const codesOf = ({ problems }: AuditEvidenceBody): readonly string[] => problems.map(({ code }) => code)

describe('a gateway whose audit has checkpoints', () => {
  const scratch = (t: TestContext): AuditConfig & { path: string } => {
    const folder = mkdtempSync(join(tmpdir(), 'toolgate-evidence-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    return { store: 'sqlite', mode: 'batched', path: join(folder, 'audit.db') }
  }

  it('has no problem at first', async (t) => {
    const audit = scratch(t)
    const { gateway, log } = await start(t, audit)
    const { store, checkpoints, problems } = await evidenceOf(gateway)
    assert.deepEqual([store, checkpoints?.path, problems], ['sqlite', checkpointsPath(audit.path), []])
    assert.deepEqual(log, [])
  })

  it('reports in its API that they were removed while it runs', async (t) => {
    const audit = scratch(t)
    const { gateway } = await start(t, audit)
    rmSync(dirname(checkpointsPath(audit.path)), { recursive: true })
    assert.deepEqual(codesOf(await evidenceOf(gateway)), ['checkpoints_missing'])
  })

  it('reports in its log and its API that they were missing at the start', async (t) => {
    const audit = scratch(t)
    for (let i = 0; i < 2; i++) await openSqliteAudit({ path: audit.path }).close()
    rmSync(dirname(checkpointsPath(audit.path)), { recursive: true })
    const { gateway, log } = await start(t, audit)
    assert.deepEqual(codesOf(await evidenceOf(gateway)), ['checkpoints_missing'])
    assert.match(log[0]?.detail ?? '', /checkpoints signed up to record 2/)
  })

  it('warns in its log and by its API when audit, checkpoints and key are in one folder', async (t) => {
    const audit = scratch(t)
    const checkpoints = { path: `${audit.path}.checkpoints` }
    const { gateway, log } = await start(t, { ...audit, checkpoints })
    assert.deepEqual(codesOf(await evidenceOf(gateway)), ['checkpoints_together', 'key_together'])
    assert.deepEqual(
      log.map(({ level }) => level),
      ['warn', 'warn'],
    )
    assert.match(log[0]?.message ?? '', /are in the folder of the audit/)
  })

  it('promises nothing without checkpoints', async (t) => {
    const { gateway } = await start(t, { store: 'memory', mode: 'batched' })
    assert.deepEqual(await evidenceOf(gateway), { store: 'memory', problems: [] })
  })
})

describe('POST /api/audit/rotate', () => {
  it('closes the file of JSON lines for an operator without a tenant, and for nobody else', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'toolgate-rotate-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const callers = [
      callerOf('console-operator', { user: 'ada', roles: ['operator'] }),
      callerOf('console-viewer', { user: 'vera' }),
      callerOf('console-tenant', { user: 'tom', tenant: 'acme', roles: ['operator'] }),
    ]
    const path = join(folder, 'audit.jsonl')
    const { gateway } = await start(t, { store: 'jsonl', mode: 'batched', path }, callers)
    const rotate = async (key: string): Promise<unknown> => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const answer = await fetch(`${gateway.url}/api/audit/rotate`, { method: 'POST', headers, body: '{}' })
      return [answer.status, await answer.json()]
    }
    for (const key of ['console-viewer', 'console-tenant']) assert.equal(((await rotate(key)) as [number])[0], 403)
    assert.deepEqual(await rotate('console-operator'), [200, { closed: 'audit.jsonl.000000000001-000000000001' }])
    assert.deepEqual(await rotate('console-operator'), [200, { closed: null }])
  })
})
