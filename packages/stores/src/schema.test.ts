import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { checkSchema, prepareSchema, type Schema } from './schema.ts'
import { numberOf } from './sqlite-file.ts'
import { openSqliteAudit } from './sqlite.ts'
import { openScratchStores } from './testing/open-scratch-stores.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { verifyAudit } from './verify.ts'

const LATEST = { state: 9, audit: 2 }

/** Returns a file as an earlier version made it. */
function earlier(t: TestContext, name: string): string {
  const path = join(scratchFolder(t), 'store.db')
  const db = new DatabaseSync(path)
  db.exec(readFileSync(new URL(`testing/schemas/${name}.sql`, import.meta.url), 'utf8'))
  db.close()
  return path
}

function read<T>(path: string, use: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return use(db)
  } finally {
    db.close()
  }
}

const versionOf = (path: string): number => read(path, (db) => numberOf(db, 'PRAGMA user_version'))
/** The tables and indexes, with their columns. */
const shapeOf = (path: string): unknown =>
  read(path, (db) => {
    const names = db.prepare("SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2").all()
    return names.map(({ type, name }) => [
      type,
      name,
      db
        .prepare(`SELECT name FROM pragma_table_info('${String(name)}') ORDER BY name`)
        .all()
        .map((column) => column['name']),
    ])
  })

for (const version of [1, 2, 3, 4, 5, 6, 7, 8])
  describe(`a state of version ${version}`, () => {
    it('is upgraded to the shape of a new one, and keeps everything', async (t) => {
      const path = earlier(t, `state-${version}`)
      const stores = openScratchStores(t, { path, bootId: 'boot-1' })
      assert.equal((await stores.approvals.get('a-1', 2000))?.tool, 't')
      assert.equal(await stores.approvals.consume('a-1', 2000), true)
      assert.deepEqual(await stores.state.get('halts/x'), { reason: 'test' })
      assert.equal(versionOf(path), LATEST.state)
      const fresh = join(scratchFolder(t), 'fresh.db')
      openScratchStores(t, { path: fresh })
      assert.deepEqual(shapeOf(path), shapeOf(fresh))
    })

    it('leaves a copy of what it was, for its owner only', (t) => {
      const path = earlier(t, `state-${version}`)
      openScratchStores(t, { path, bootId: 'boot-1' })
      const copy = `${path}.version-${version}`
      assert.equal(versionOf(copy), version)
      assert.equal(
        read(copy, (db) => db.prepare('SELECT status FROM approvals').get()?.['status']),
        'approved',
      )
      assert.equal(statSync(copy).mode & 0o777, 0o600)
    })
  })

describe('a state of version 8', () => {
  it('keeps the people', async (t) => {
    const stores = openScratchStores(t, { path: earlier(t, 'state-8'), bootId: 'boot-1' })
    const { people, count } = await stores.people.read()
    const [vera] = people
    assert.deepEqual([count, vera?.user, vera?.roles, vera?.firstSeenAt], [1, 'corp/vera', ['viewer'], 1000])
  })
})

describe('an audit of version 1', () => {
  it('is upgraded when it is written, verifies, and leaves a copy', async (t) => {
    const path = earlier(t, 'audit-1')
    const audit = openSqliteAudit({ path })
    assert.deepEqual(
      (await audit.query({ session: 's' })).map(({ seq }) => seq),
      [1],
    )
    await audit.close()
    assert.deepEqual([versionOf(path), versionOf(`${path}.version-1`)], [LATEST.audit, 1])
    const { status, unchainedBefore } = await verifyAudit({ path })
    assert.deepEqual([status, unchainedBefore], ['ok', 3])
  })

  it('is read as it is without an upgrade', async (t) => {
    const path = earlier(t, 'audit-1')
    const audit = openSqliteAudit({ path, readOnly: true })
    assert.equal((await audit.query({ user: 'vera' })).length, 1)
    await audit.close()
    assert.deepEqual([versionOf(path), existsSync(`${path}.version-1`)], [1, false])
  })
})

describe('a file of a later version', () => {
  it('is refused with both versions and what to do, by every reader and writer', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    await openSqliteAudit({ path }).close()
    const db = new DatabaseSync(path)
    db.exec('PRAGMA user_version = 9')
    db.close()
    const message = /it has version 9, and this Toolgate knows 2: use the Toolgate that wrote it, or restore a backup/
    assert.throws(() => openSqliteAudit({ path }), { message })
    assert.throws(() => openSqliteAudit({ path, readOnly: true }), { message })
    await assert.rejects(verifyAudit({ path }), { message })
  })
})

describe('prepareSchema', () => {
  const schema: Schema = {
    name: 'a state',
    applicationId: 7,
    version: 3,
    tables: 'CREATE TABLE a (x)',
    upgrades: new Map([
      [1, 'ALTER TABLE a ADD COLUMN y; INSERT INTO a VALUES (1, 2)'],
      [2, 'ALTER TABLE a ADD COLUMN z; SELECT * FROM missing'],
    ]),
  }

  it('leaves the file as it was when an upgrade fails half-way', (t) => {
    const path = join(scratchFolder(t), 'a.db')
    const db = new DatabaseSync(path)
    t.after(() => db.close())
    prepareSchema(db, path, { ...schema, version: 1 })
    assert.throws(() => prepareSchema(db, path, schema), /no such table: missing/)
    assert.equal(numberOf(db, 'PRAGMA user_version'), 1)
    assert.equal(numberOf(db, "SELECT count(*) FROM pragma_table_info('a')"), 1)
    assert.equal(numberOf(db, 'SELECT count(*) FROM a'), 0)
  })

  it('is done by another process while this one looks whether the file is new', (t) => {
    const path = join(scratchFolder(t), 'a.db')
    const [db, other] = [new DatabaseSync(path), new DatabaseSync(path)]
    t.after(() => [db, other].forEach((one) => one.close()))
    const prepare = db.prepare.bind(db)
    let asked = 0
    t.mock.method(db, 'prepare', (sql: string) => {
      if (asked++ === 1) prepareSchema(other, path, { ...schema, version: 1 })
      return prepare(sql)
    })
    assert.doesNotThrow(() => checkSchema(db, { ...schema, version: 1 }, { mayBeNew: true }))
    assert.ok(asked > 1)
  })

  it('refuses a version that it cannot upgrade', (t) => {
    const path = join(scratchFolder(t), 'a.db')
    const db = new DatabaseSync(path)
    t.after(() => db.close())
    prepareSchema(db, path, { ...schema, version: 1 })
    assert.throws(() => prepareSchema(db, path, { ...schema, upgrades: new Map() }), /cannot upgrade/)
  })
})
