import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { memoryApprovals, memoryLock, memoryState } from '@toolgate/core/stores'
import { openSqliteStores } from '@toolgate/stores/sqlite'
import { type Case, measure, printFigures } from './lib.ts'

const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
const FLOOR = 'one INSERT, durable'
const VALUE = { reason: 'an incident', by: 'ada', at: 1_700_000_000_000 }

/** A row of the same size, in the same mode, in a transaction of its own: what any store on SQLite pays. */
function floorIn(path: string): Case {
  const db = new DatabaseSync(path)
  db.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE rows (id INTEGER PRIMARY KEY, value TEXT)',
  )
  const insert = db.prepare('INSERT INTO rows (value) VALUES (?)')
  return {
    name: FLOOR,
    run(count) {
      for (let i = 0; i < count; i++) insert.run(JSON.stringify(VALUE))
    },
  }
}

const sqlite = openSqliteStores({ path: join(folder, 'state.db'), approvals: { maxKept: 1_000_000 } })
const memory = { approvals: memoryApprovals(), state: memoryState(), lock: memoryLock() }
type Stores = Pick<typeof sqlite, 'approvals' | 'state' | 'lock'>

let next = 0

/** Asked for, approved and consumed: three writes. */
function approve({ approvals }: Stores): Case['run'] {
  return async (count) => {
    for (let i = 0; i < count; i++) {
      const binding = { tenant: 'acme', user: 'vera', tool: 't', definitionHash: 'd', inputHash: `${next++}`, run: '' }
      const { id } = await approvals.request(binding, VALUE, 1000)
      await approvals.decide(id, { decision: 'approve', by: 'ada', atMs: 1000 })
      if (!(await approvals.consume(id, 1000))) throw new Error('not consumed')
    }
  }
}

function setAndGet({ state }: Stores): Case['run'] {
  return async (count) => {
    for (let i = 0; i < count; i++) {
      await state.set(`halt:${i % 100}`, VALUE)
      if ((await state.get(`halt:${i % 100}`)) === undefined) throw new Error('not there')
    }
  }
}

function turn({ lock }: Stores): Case['run'] {
  return async (count) => {
    for (let i = 0; i < count; i++) await (await lock.acquire('s')).release()
  }
}

const figures = await measure([
  floorIn(join(folder, 'floor.db')),
  { name: 'SQLite, state: set and get', run: setAndGet(sqlite), budget: '2 times' },
  {
    name: 'SQLite, state: get',
    async run(count) {
      for (let i = 0; i < count; i++) await sqlite.state.get('halt:1')
    },
  },
  {
    name: 'SQLite, counters: take two uses',
    async run(count) {
      const uses = ['a', 'b'].map((key) => ({ key, max: 1_000_000, windowMs: 1000 }))
      for (let i = 0; i < count; i++) if (!(await sqlite.counters.take(uses)).allowed) throw new Error('refused')
    },
  },
  { name: 'SQLite, approvals: request, decide and consume', run: approve(sqlite) },
  { name: 'SQLite, lock: a turn (two writes)', run: turn(sqlite) },
  { name: 'memory, state: set and get', run: setAndGet(memory) },
  { name: 'memory, approvals: request, decide and consume', run: approve(memory) },
  { name: 'memory, lock: a turn', run: turn(memory) },
])
printFigures('Stores', figures, FLOOR)
sqlite.close()
rmSync(folder, { recursive: true, force: true })
