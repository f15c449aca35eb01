import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGate, defineTool } from '@toolgate/core'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { createAuthority, type TestAuthority } from '../../../../tests/support/certificates.ts'
import {
  freePort,
  type OwnServer,
  postgresAnswers,
  startOwnServer,
  startPostgres,
} from '../../../../tests/support/own-server.ts'
import { openPostgresStores, type PostgresStores } from './open-stores.ts'
import { ownPostgres } from '../../../../tests/support/own-stores.ts'

const NOBODY = 65_534

/** A folder that a server which does not run as root can read. */
function publicFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-network-'))
  chmodSync(folder, 0o755)
  return folder
}

async function problemOf(url: string): Promise<string> {
  const error: unknown = await openPostgresStores({ url }).then(
    async (stores) => (await stores.close(), assert.fail('it was opened')),
    (reason: unknown) => reason,
  )
  return (error as Error).message
}

withBinaries(['postgres', 'initdb', 'openssl'], ({ openssl, ...paths }) => {
  describe('openPostgresStores over TLS', () => {
    let server: OwnServer
    let own: TestAuthority
    let other: TestAuthority
    let folder = ''
    before(async () => {
      folder = publicFolder()
      for (const name of ['own', 'other']) mkdirSync(path.join(folder, name))
      own = createAuthority(openssl, path.join(folder, 'own'))
      other = createAuthority(openssl, path.join(folder, 'other'))
      const { certFile, keyFile } = own.issue('server')
      chmodSync(keyFile, 0o600)
      if (process.getuid?.() === 0) chownSync(keyFile, NOBODY, NOBODY)
      const ssl = ['-c', 'ssl=on', '-c', `ssl_cert_file=${certFile}`, '-c', `ssl_key_file=${keyFile}`]
      server = await startPostgres(paths, [...ssl, '-c', 'listen_addresses=127.0.0.1,127.0.0.2'])
    })
    after(async () => {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    })
    const urlOf = ({ file }: TestAuthority, host = '127.0.0.1') =>
      `postgres://postgres@${host}:${server.port}/postgres?sslmode=verify-full&sslrootcert=${file}`

    it('opens with the authority that has signed the certificate, and every connection is encrypted', async (t) => {
      const stores = await openPostgresStores({ url: urlOf(own) })
      t.after(() => stores.close())
      await stores.join()
      const rows = await stores.database.query({
        name: 'ssl',
        text: "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'toolgate'",
      })
      assert.ok(rows.length >= 2)
      assert.ok(rows.every(({ ssl }) => ssl === true))
    })

    it('refuses a certificate of another authority, and one for another host, and says so', async () => {
      assert.match(await problemOf(urlOf(other)), /: no trusted authority has signed the certificate of the server$/)
      assert.match(await problemOf(urlOf(own, '127.0.0.2')), /: the certificate of the server is for another host$/)
    })
  })
})

withBinaries(['postgres', 'initdb', 'pgbouncer'], ({ pgbouncer, ...paths }) => {
  describe('openPostgresStores through PgBouncer in transaction mode', () => {
    const postgres = ownPostgres(paths)
    let bouncer: OwnServer
    let url = ''
    before(async () => {
      bouncer = await startOwnServer({
        command: pgbouncer,
        unprivileged: true,
        stopSignal: 'SIGINT',
        prepare: ({ folder, port }) =>
          writeFileSync(path.join(folder, 'bouncer.ini'), bouncerFile(port, postgres.server)),
        args: ({ folder }) => [path.join(folder, 'bouncer.ini')],
      })
      url = `postgres://postgres@127.0.0.1:${bouncer.port}/postgres`
    })
    after(() => bouncer.stop())
    const open = async (t: { after(work: () => unknown): void }): Promise<PostgresStores> => {
      const stores = await openPostgresStores({ url, pooler: 'transaction', statementTimeoutMs: 30_000 })
      t.after(() => stores.close())
      return stores
    }

    it('names what the pooler does not take where it is not said that there is one', async () => {
      assert.match(await problemOf(url), /unsupported startup parameter: statement_timeout/)
    })

    it('counts exactly, spends once and gives turns, over four connections for six processes', async (t) => {
      const all = await Promise.all(Array.from({ length: 6 }, () => open(t)))
      const uses = [{ key: 'a', max: 50, windowMs: 3_600_000 }]
      const taken = await Promise.all(
        all.flatMap(({ counters }) => Array.from({ length: 20 }, async () => counters.take(uses))),
      )
      assert.equal(taken.filter(({ allowed }) => allowed).length, 50)
      const binding = { tenant: 't', user: 'u', tool: 't', definitionHash: 'd', inputHash: 'i', run: undefined }
      const [one] = all
      assert.ok(one)
      const { id } = await one.approvals.request(binding, {}, Date.now())
      await one.approvals.decide(id, { decision: 'approve', by: 'ada', atMs: Date.now() })
      const spent = await Promise.all(all.map(async ({ approvals }, i) => approvals.consume(id, Date.now(), `${i}`)))
      assert.equal(spent.filter(Boolean).length, 1)
      const tokens = await Promise.all(
        all.map(async ({ lock, state }) => {
          const { fencingToken, release } = await lock.acquire('s')
          await state.set('turn', fencingToken, { fence: { session: 's', fencingToken } })
          await release()
          return fencingToken
        }),
      )
      assert.equal(new Set(tokens).size, 6)
    })

    it('has halts in force everywhere without notifications, and no setting of one process in the session of another', async (t) => {
      const [here, there] = [await open(t), await open(t)]
      const gateOf = async (stores: PostgresStores) => {
        const { state, lease, ready } = await stores.join()
        const gate = createGate({ tools: [defineTool({ name: 'read', execute: () => 1 })], state, lease })
        await ready()
        return gate
      }
      const [one, other] = [await gateOf(here), await gateOf(there)]
      const call = async () => (await (await other.view({ user: 'vera' })).call({ tool: 'read' })).status
      assert.equal(await call(), 'done')
      await one.halt({ tool: 'read', reason: 'it leaks' })
      assert.equal(await call(), 'refused')
      const commits = await Promise.all(
        Array.from({ length: 40 }, () =>
          here.database.query({
            name: '',
            text: "SELECT current_setting('synchronous_commit') AS waits, pg_sleep(0.05)",
          }),
        ),
      )
      assert.deepEqual(new Set(commits.flat().map(({ waits }) => waits)), new Set(['on']))
    })
  })
})

function bouncerFile(port: number, server: OwnServer): string {
  return `
[databases]
postgres = host=127.0.0.1 port=${server.port} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
`
}

withBinaries(['postgres', 'initdb', 'pg_basebackup'], ({ pg_basebackup: copy, ...paths }) => {
  describe('a fail-over to a standby that was behind', () => {
    it('has processes refuse, as changes may be lost, until a person accepts it', async (t) => {
      const primary = await startPostgres(paths)
      t.after(() => primary.stop())
      const standby = await startStandby({ copy, ...paths }, primary.port)
      t.after(() => standby.stop())
      const front = await startFront(primary.port)
      t.after(() => front.close())
      const stores = await openPostgresStores({ url: `postgres://postgres@127.0.0.1:${front.port}/postgres` })
      t.after(() => stores.close())
      const joined = await stores.join()
      const gate = createGate({
        tools: [defineTool({ name: 'read', execute: () => 1 }), defineTool({ name: 'pay', execute: () => 1 })],
        state: joined.state,
        lease: joined.lease,
      })
      const call = async (tool: string) => {
        await joined.ready()
        return (await gate.view({ user: 'vera' })).call({ tool })
      }
      assert.equal((await call('read')).status, 'done')
      await replicated(primary, standby)
      await standby.end()
      await gate.halt({ tool: 'pay', reason: 'it leaks' })
      await primary.end()
      await standby.restart()
      await sql(standby.port, 'SELECT pg_promote()')
      front.target = standby.port
      // The halt is lost, and nothing starts without it.
      for (;;) {
        const lapse = joined.lease.lapse()
        assert.notEqual((await call('pay')).status, 'done')
        if (/has a new timeline/.test(lapse?.text ?? '')) break
        await sleep(20)
      }
      assert.equal((await call('read')).status, 'refused')
      await joined.accept()
      while ((await call('read')).status !== 'done') await sleep(20)
      assert.equal((await call('pay')).status, 'done', 'it has to be halted again')
    })
  })
})

/** A standby that streams from a primary. */
function startStandby(programs: { copy: string; postgres: string }, primaryPort: number): Promise<OwnServer> {
  const data = (folder: string) => path.join(folder, 'data')
  return startOwnServer({
    command: programs.postgres,
    unprivileged: true,
    stopSignal: 'SIGINT',
    prepare: ({ folder, user }) => {
      const from = ['-h', '127.0.0.1', '-p', String(primaryPort), '-U', 'postgres']
      execFileSync(programs.copy, [...from, '-D', data(folder), '-R', '--no-sync', '-c', 'fast'], {
        ...user,
        cwd: folder,
      })
    },
    args: ({ port, folder }) => [
      '-D',
      data(folder),
      '-p',
      String(port),
      '-k',
      folder,
      '-c',
      'listen_addresses=127.0.0.1',
    ],
    isReady: postgresAnswers,
  })
}

async function sql(port: number, text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { Client } = await import('pg')
  const client = new Client(`postgres://postgres@127.0.0.1:${port}/postgres`)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

async function replicated(primary: OwnServer, standby: OwnServer): Promise<void> {
  const [row] = await sql(primary.port, 'SELECT pg_current_wal_lsn()::text AS lsn')
  for (;;) {
    const [seen] = await sql(standby.port, `SELECT pg_last_wal_replay_lsn() >= '${String(row?.['lsn'])}' AS has`)
    if (seen?.['has'] === true) return
    await sleep(20)
  }
}

/** The address that a fail-over keeps. */
async function startFront(target: number) {
  const sockets = new Set<Socket>()
  const port = await freePort()
  const front = {
    port,
    target,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
  const server = createServer((socket) => {
    const to = connect(front.target, '127.0.0.1')
    for (const [one, other] of [
      [socket, to],
      [to, socket],
    ] as const) {
      sockets.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return front
}
