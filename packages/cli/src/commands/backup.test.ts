import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hash } from 'node:crypto'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { describe, it, type TestContext } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { auditEntry } from '@toolgate/testing'
import { openJsonlAudit } from '@toolgate/stores/jsonl'
import { openSqliteAudit, openSqliteStores } from '@toolgate/stores/sqlite'
import { verifyAudit } from '@toolgate/stores/verify'
import { fakeIo } from '../testing/fake-io.ts'
import { backupCommand } from './backup.ts'
import { restoreCommand, type RestoreOptions } from './restore.ts'

type Store = 'sqlite' | 'jsonl'

/** A gateway's folder, and another one to restore into. */
function setup(t: TestContext, store: Store = 'sqlite') {
  const root = mkdtempSync(path.join(tmpdir(), 'toolgate-backup-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const home = path.join(root, 'home')
  const config = path.join(home, 'toolgate.yaml')
  const file = path.join(home, `.toolgate/audit.${store === 'sqlite' ? 'db' : 'jsonl'}`)
  const open = () => ({
    audit: (store === 'sqlite' ? openSqliteAudit : openJsonlAudit)({ path: file, checkpoints: { everyMs: 20 } }),
    stores: openSqliteStores({ path: path.join(home, '.toolgate/state.db'), approvals: { ttlMs: 1e9 } }),
  })
  const running = open()
  writeFileSync(config, `servers: {}\npolicy: [{ allow: ["*"] }]\naudit: { store: ${store} }\n`)
  t.after(() => {
    running.stores.close()
    return running.audit.close()
  })
  const backup = path.join(root, 'backup')
  return {
    ...running,
    open,
    root,
    home,
    config,
    backup,
    file,
    async back(to = backup) {
      const io = fakeIo()
      return { code: await backupCommand(to, { config }, io), out: io.out() }
    },
    async restore(options: Partial<RestoreOptions> = {}) {
      const io = fakeIo()
      return { code: await restoreCommand(backup, { config, ...options }, io), out: io.out(), err: io.err() }
    },
    async stop() {
      running.stores.close()
      await running.audit.close()
    },
  }
}

const bindingOf = (user: string) =>
  ({ tenant: undefined, user, tool: 't', definitionHash: 'd', inputHash: 'i', run: '' }) as const

for (const store of ['sqlite', 'jsonl'] as const)
  describe(`toolgate backup and restore, with an audit in ${store}`, () => {
    it('copy a running gateway whole, for its owner only', async (t) => {
      const { audit, back, backup, file } = setup(t, store)
      await audit.write(auditEntry({ tool_call_id: 'a' }))
      await audit.rotate()
      const done = new AbortController()
      const writing = (async () => {
        for (let i = 0; !done.signal.aborted; i++) {
          await audit.write(auditEntry({ event: 'tool_result', tool_call_id: `c${i}` }))
          if (i % 50 === 0) await endOfTurn()
        }
      })()
      const { code, out } = await back()
      done.abort()
      await writing
      assert.equal(code, 'ok')
      assert.match(out, /It holds secrets/)
      for (const role of readdirSync(backup)) {
        const place = path.join(backup, role)
        const files = statSync(place).isDirectory() ? readdirSync(place).map((name) => path.join(place, name)) : [place]
        for (const one of files) assert.equal(statSync(one).mode & 0o777, 0o600, one)
      }
      const copy = path.join(backup, 'audit', path.basename(file))
      const checkpoints = path.join(backup, 'evidence', `${path.basename(file)}.checkpoints`)
      const verdict = await verifyAudit({ path: copy, checkpoints })
      assert.equal(verdict.status, 'ok')
      assert.ok(verdict.lastSeq > 1)
    })

    it('put everything back into an empty folder, and the audit says so', async (t) => {
      const { audit, stores, back, restore, stop, home, file } = setup(t, store)
      await audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'a' }))
      await stores.state.set('halts/x', { reason: 'test' })
      await back()
      await stop()
      rmSync(home, { recursive: true })
      const { code, err } = await restore()
      assert.equal(code, 'ok')
      assert.match(err, /Limits count as they did then/)
      assert.match(err, /Keys that were revoked since are valid again/)
      const verdict = await verifyAudit({ path: file, mustBeSigned: true })
      assert.deepEqual([verdict.status, verdict.checkpoints.lastSeq], ['ok', verdict.lastSeq])
      const again = openSqliteStores({ path: path.join(home, '.toolgate/state.db') })
      t.after(() => again.close())
      assert.deepEqual(await again.state.get('halts/x'), { reason: 'test' })
      assert.ok(readFileSync(path.join(home, 'toolgate.yaml'), 'utf8').includes('servers'))
      assert.equal(statSync(path.join(home, '.toolgate/checkpoints')).mode & 0o777, 0o700)
    })

    it('refuse a running gateway, and files that are there, which --force keeps aside', async (t) => {
      const { audit, back, restore, stop, home, file } = setup(t, store)
      await audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'a' }))
      await back()
      await assert.rejects(restore({ force: true }), /has .* open: stop it first/)
      await audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'after' }))
      await stop()
      await assert.rejects(restore(), /There are files already/)
      assert.equal((await verifyAudit({ path: file, mustBeSigned: true })).status, 'ok')
      const { code, out } = await restore({ force: true })
      assert.equal(code, 'ok')
      assert.match(out, /Kept aside: .*state\.db\.before-restore-/)
      const aside = readdirSync(path.join(home, '.toolgate')).filter((name) => name.includes('before-restore'))
      assert.ok(aside.some((name) => name.startsWith('audit.')))
      assert.equal((await verifyAudit({ path: file, mustBeSigned: true })).status, 'ok')
    })
  })

describe('what runs have read', () => {
  it('is unknown after a restore: not forgotten, neither that of a run nor that of a caller', async (t) => {
    const { stores, back, restore, stop, open } = setup(t)
    const tools = ['web:fetch', 'mail:send', 'crm:find'].map((id) => {
      const [namespace, name] = id.split(':') as [string, string]
      return defineTool({ namespace, name, execute: () => 'done' })
    })
    const deny = [{ match: 'mail:send', when: "'untrusted' in run.labels" }]
    const codeOf = async (store: typeof stores.histories, tool: string, id?: string) => {
      const gate = createGate({ tools, policy: { deny }, labels: { trusted: ['crm:*', 'mail:*'] }, history: { store } })
      const view = await gate.view({ user: 'vera' })
      const outcome = await view.call({ tool, ...(id !== undefined && { run: { id } }) })
      return outcome.status === 'refused' ? outcome.decision.reasons[0]?.code : outcome.status
    }
    const before = stores.histories
    assert.equal(await codeOf(before, 'crm:find', 'a'), 'done')
    await back()
    assert.equal(await codeOf(before, 'web:fetch', 'a'), 'done')
    assert.equal(await codeOf(before, 'web:fetch'), 'done')
    await stop()
    assert.equal((await restore({ force: true })).code, 'ok')
    const again = open()
    t.after(() => (again.stores.close(), again.audit.close()))
    const after = again.stores.histories
    assert.equal(await codeOf(after, 'mail:send', 'a'), 'history_unknown')
    assert.equal(await codeOf(after, 'mail:send'), 'history_unknown')
    assert.equal(await codeOf(after, 'mail:send', 'b'), 'done', 'a run that begins now')
  })
})

describe('no approval is used twice through a restore', () => {
  it('when it was used after the backup: open ones are revoked', async (t) => {
    const { stores, back, restore, stop, home } = setup(t)
    const nowMs = Date.now()
    const { id } = await stores.approvals.request(bindingOf('vera'), {}, nowMs)
    const waiting = await stores.approvals.request(bindingOf('otto'), {}, nowMs)
    await stores.approvals.decide(id, { decision: 'approve', by: 'ada', atMs: nowMs })
    const { inputHash: _, ...bound } = bindingOf('vera')
    const life = { uses: 5, grantedBy: 'ada', grantedAt: nowMs, expiresAt: nowMs + 3_600_000 }
    await stores.grants.create({ ...bound, ...life, id, covers: 'tool', clauses: [] }, nowMs)
    await back()
    assert.equal(await stores.approvals.consume(id, nowMs), true)
    await stop()
    rmSync(home, { recursive: true })
    const { err } = await restore()
    assert.match(err, /2 open approvals revoked, 0 approvals found used, 1 grant revoked/)
    const again = openSqliteStores({ path: path.join(home, '.toolgate/state.db') })
    t.after(() => again.close())
    assert.equal(await again.approvals.consume(id, nowMs), false)
    assert.equal(await again.grants.take(id, nowMs, 's'), false)
    assert.equal((await again.approvals.get(id, nowMs))?.status, 'revoked')
    assert.equal((await again.approvals.get(waiting.id, nowMs))?.status, 'rejected')
  })

  it('when it was used between the copies of the state and of the audit, also with --keep-approvals', async (t) => {
    const { stores, audit, back, restore, stop, home } = setup(t)
    const nowMs = Date.now()
    const used = await stores.approvals.request(bindingOf('vera'), {}, nowMs)
    const open = await stores.approvals.request(bindingOf('otto'), {}, nowMs)
    for (const { id } of [used, open])
      await stores.approvals.decide(id, { decision: 'approve', by: 'ada', atMs: nowMs })
    // The audit is ahead of the state.
    await audit.write(auditEntry({ tool_call_id: 'a', approval_id: used.id }))
    await audit.flush()
    await back()
    await stop()
    rmSync(home, { recursive: true })
    await restore({ keepApprovals: true })
    const again = openSqliteStores({ path: path.join(home, '.toolgate/state.db') })
    t.after(() => again.close())
    assert.equal(await again.approvals.consume(used.id, nowMs), false)
    assert.equal(await again.approvals.consume(open.id, nowMs), true)
  })

  it('nor a round that waited for input', async (t) => {
    const { stores, back, restore, stop, home } = setup(t)
    await stores.state.set('gateway/open-states/vera/1', true)
    await back()
    await stop()
    rmSync(home, { recursive: true })
    await restore()
    const again = openSqliteStores({ path: path.join(home, '.toolgate/state.db') })
    t.after(() => again.close())
    assert.equal(await again.state.get('gateway/open-states/vera/1'), undefined)
  })
})

describe('toolgate backup', () => {
  it('refuses a folder that is not empty', async (t) => {
    const { back, root } = setup(t)
    await assert.rejects(back(root), /is not empty/)
  })

  it('makes no backup of an audit that does not verify', async (t) => {
    const { audit, back, backup, file } = setup(t, 'jsonl')
    await audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'a' }))
    await audit.flush()
    writeFileSync(file, readFileSync(file, 'utf8').replace('"a"', '"b"'))
    await assert.rejects(back(), /does not verify/)
    assert.ok(!existsSync(path.join(backup, 'backup.json')))
  })
})

/** Adds a file to a backup as whoever can write to it would, or replaces one. */
function addFile(backup: string, role: string, name: string, content: string | Buffer): void {
  writeFileSync(path.join(backup, role, name), content)
  const file = path.join(backup, 'backup.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  const entry = { role, name, bytes: Buffer.from(content).length, sha256: hash('sha256', content) }
  const others = manifest.files.filter((one: typeof entry) => one.role !== role || one.name !== name)
  writeFileSync(file, JSON.stringify({ ...manifest, files: [...others, entry] }))
}

describe('toolgate restore', () => {
  it('leaves no state where approvals can be used again, when it fails while it revokes them', async (t) => {
    const { stores, back, restore, stop, home } = setup(t)
    const { id } = await stores.approvals.request(bindingOf('vera'), {}, Date.now())
    await stores.approvals.decide(id, { decision: 'approve', by: 'ada', atMs: Date.now() })
    const state = path.join(home, '.toolgate/state.db')
    const db = new DatabaseSync(state)
    db.exec("CREATE TRIGGER full BEFORE UPDATE ON approvals BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    db.close()
    await back()
    await stop()
    await assert.rejects(restore({ force: true }), /disk is full/)
    assert.ok(!existsSync(state))
  })

  it('changes nothing when a copy cannot be made', async (t) => {
    const { back, restore, stop, home } = setup(t)
    await back()
    await stop()
    const folder = path.join(home, '.toolgate')
    mkdirSync(path.join(folder, 'audit.db.restoring'))
    const before = readdirSync(folder)
    await assert.rejects(restore({ force: true }), /audit\.db\.restoring/)
    assert.deepEqual(readdirSync(folder), before)
  })

  const spoilings: readonly (readonly [what: string, spoil: (backup: string) => void, why: RegExp])[] = [
    ['that was not finished', (backup) => rmSync(path.join(backup, 'backup.json')), /written last/],
    [
      'with a changed file',
      (backup) => {
        const bytes = readFileSync(path.join(backup, 'state/state.db'))
        bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
        writeFileSync(path.join(backup, 'state/state.db'), bytes)
      },
      /state\.db was changed/,
    ],
    ['with a missing file', (backup) => rmSync(path.join(backup, 'state/state.db')), /state\.db is missing/],
    [
      'of a later version',
      (backup) => {
        const file = path.join(backup, 'backup.json')
        writeFileSync(file, readFileSync(file, 'utf8').replace('"format": 1', '"format": 2'))
      },
      /of format 2; this one knows 1/,
    ],
    [
      'whose names lead elsewhere',
      (backup) => {
        const file = path.join(backup, 'backup.json')
        writeFileSync(file, readFileSync(file, 'utf8').replace('"name": "state.db"', '"name": "../../state.db"'))
      },
      /does not describe one/,
    ],
    [
      'with a file in the place of another',
      (backup) => {
        writeFileSync(path.join(backup, '../home/.toolgate/notes.txt'), 'mine')
        addFile(backup, 'audit', 'notes.txt', 'theirs')
      },
      /has a file audit\/notes\.txt/,
    ],
    ['with two states', (backup) => addFile(backup, 'state', 'other.db', ''), /two files for one place/],
    [
      'whose state a later version wrote',
      (backup) => {
        const file = path.join(backup, 'state/state.db')
        const db = new DatabaseSync(file)
        db.exec('PRAGMA user_version = 99; PRAGMA journal_mode = DELETE')
        db.close()
        addFile(backup, 'state', 'state.db', readFileSync(file))
      },
      /The backup's state: .*99/,
    ],
  ]
  for (const [what, spoil, why] of spoilings)
    it(`refuses a backup ${what}, and changes nothing`, async (t) => {
      const { back, restore, stop, home, backup } = setup(t)
      await back()
      await stop()
      spoil(backup)
      const before = readdirSync(path.join(home, '.toolgate'))
      await assert.rejects(restore({ force: true }), why)
      assert.deepEqual(readdirSync(path.join(home, '.toolgate')), before)
    })
})
