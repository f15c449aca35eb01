import { statSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { ToolgateError } from '@toolgate/core'
import type { MaybePromise } from '@toolgate/core/internal'
import { messageOf } from '@toolgate/values'
import type { Clock } from '@toolgate/core/stores'
import { checkSchema, prepareSchema, type Schema } from '../schema.ts'
import { createPrivately, isBusy, OPEN_TIMEOUT_MS, retryWhileBusy } from '../sqlite-file.ts'
import { carryOverBoot } from './machine.ts'

interface DatabaseOptions {
  readonly path: string
  readonly clock: Clock
  readonly bootId: string | undefined
  /** The maximum number of pages of 4 KiB of the file. */
  readonly maxPages?: number | undefined
  /**
   * `disk`: acknowledged writes survive a power cut. `process`: they survive the end of the process; a power cut may lose the
   * last few seconds. Default `disk`.
   */
  readonly survives?: 'disk' | 'process' | undefined
}

/** A connection to the file, which all stores share. Its errors are `state_unavailable`. */
export interface StoresDatabase {
  readonly clock: Clock
  prepare(sql: string): StatementSync
  /** Reads in one snapshot. */
  read<T>(work: () => T): T
  /**
   * Writes all or nothing, durably. Returns at once, unless another process is writing: then it waits without blocking,
   * and later writes wait too.
   */
  write<T>(work: () => T): MaybePromise<T>
  /**
   * Joins the other writes of this and the next turn of the event loop, and of later turns while others join. They
   * share one transaction, and none resolves before the commit.
   */
  writeTogether<T>(work: () => T, batch?: WriteBatch): Promise<T>
  /**
   * Checks that the database can be written now, with a write that is undone.
   * @throws {ToolgateError} `state_unavailable`
   */
  checkWritable(): void
  close(): void
}

/** The shared work of all writes of one kind in a transaction. */
export interface WriteBatch {
  /** Called before the first of these writes. A repeated transaction calls it again. */
  begin(): void
  /** Called after the last of these writes, before the commit. */
  end(): void
}

interface Grouped {
  readonly work: () => unknown
  readonly batch: WriteBatch | undefined
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * How long a write may block the event loop to wait for another process, in milliseconds. Then it waits without
 * blocking.
 */
const BLOCKING_MS = 5
const MAX_WAIT_MS = 5000
/** A key that no entry has. The probe's value is larger than a page, so the file must have room or grow. */
const PROBE_KEY = Buffer.from([0])
const PROBE_BYTES = 8192
/** The maximum number of turns of the event loop that a group waits for others. It ends when none joins in a turn. */
const MAX_TURNS = 8

/** @throws {ToolgateError} `state_unavailable` for a file that cannot be opened or is not a state */
export function openDatabase(options: DatabaseOptions): StoresDatabase {
  const { path, clock } = options
  let db: DatabaseSync | undefined
  try {
    createPrivately(path)
    if (!statSync(path).isFile()) throw new Error('it is not a file')
    db = new DatabaseSync(path, { timeout: OPEN_TIMEOUT_MS })
    prepareDatabase(db, options)
    return new SqliteConnection(db, path, clock)
  } catch (error) {
    db?.close()
    throw new ToolgateError('state_unavailable', `The state ${path} cannot be opened: ${messageOf(error)}.`, {
      cause: error,
    })
  }
}

function prepareDatabase(
  db: DatabaseSync,
  { path, clock, bootId, maxPages, survives = 'disk' }: DatabaseOptions,
): void {
  checkSchema(db, STATE, { mayBeNew: true })
  retryWhileBusy(() => db.exec('PRAGMA journal_mode = WAL'))
  // A used approval must not become usable again after a power cut.
  db.exec(`PRAGMA synchronous = ${survives === 'disk' ? 'FULL' : 'NORMAL'}`)
  if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`)
  prepareSchema(db, path, STATE, () => carryOverBoot(db, clock, bootId))
  db.exec(`PRAGMA busy_timeout = ${BLOCKING_MS}`)
}

class SqliteConnection implements StoresDatabase {
  readonly clock: Clock
  readonly #db: DatabaseSync
  readonly #path: string
  readonly #begin: StatementSync
  readonly #beginWrite: StatementSync
  readonly #commit: StatementSync
  readonly #probe: StatementSync
  readonly #unprobe: StatementSync
  /** The last write that waits for another process. Later writes wait for it, to keep their order. */
  #last: Promise<unknown> | undefined
  /** The writes of the next group. */
  #group: Grouped[] = []

  constructor(db: DatabaseSync, path: string, clock: Clock) {
    this.clock = clock
    this.#db = db
    this.#path = path
    this.#begin = db.prepare('BEGIN')
    this.#beginWrite = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#probe = db.prepare('INSERT INTO state (key, value) VALUES (?, ?)')
    this.#unprobe = db.prepare('DELETE FROM state WHERE key = ?')
  }

  prepare(sql: string): StatementSync {
    return this.#db.prepare(sql)
  }

  read<T>(work: () => T): T {
    try {
      return this.#transact(this.#begin, work)
    } catch (error) {
      throw toFault(this.#path, error)
    }
  }

  write<T>(work: () => T): MaybePromise<T> {
    if (this.#last === undefined) {
      try {
        return this.#transact(this.#beginWrite, work)
      } catch (error) {
        if (!isBusy(error)) throw toFault(this.#path, error)
      }
    }
    const written = this.#writeWhenFree(work, this.#last, performance.now() + MAX_WAIT_MS)
    this.#last = written
    void this.#forget(written)
    return written
  }

  writeTogether<T>(work: () => T, batch?: WriteBatch): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#group.length === 0) setImmediate(() => this.#joinGroup(0, 0))
      this.#group.push({ work, batch, resolve: (answer) => resolve(answer as T), reject })
    })
  }

  checkWritable(): void {
    try {
      this.#transact(this.#beginWrite, () => {
        this.#probe.run(PROBE_KEY, 'x'.repeat(PROBE_BYTES))
        this.#unprobe.run(PROBE_KEY)
      })
    } catch (error) {
      if (!isBusy(error)) throw toFault(this.#path, error)
    }
  }

  close(): void {
    this.#db.close()
  }

  #transact<T>(start: StatementSync, work: () => T): T {
    start.run()
    try {
      const result = work()
      this.#commit.run()
      return result
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }

  async #writeWhenFree<T>(work: () => T, before: Promise<unknown> | undefined, untilMs: number): Promise<T> {
    await (before ? before.catch(() => {}) : pause())
    for (;;) {
      try {
        return this.#transact(this.#beginWrite, work)
      } catch (error) {
        if (!isBusy(error) || performance.now() >= untilMs) throw toFault(this.#path, error)
      }
      await pause()
    }
  }

  async #forget(written: Promise<unknown>): Promise<void> {
    try {
      await written
    } catch {
      // The caller gets the error.
    }
    if (this.#last === written) this.#last = undefined
  }

  /** Writes the group after a turn in which no write has joined. Requests arrive at each poll of the sockets. */
  #joinGroup(turns: number, size: number): void {
    const { length } = this.#group
    if (turns > 0 && (length === size || turns >= MAX_TURNS)) void this.#writeGroup()
    else setImmediate(() => this.#joinGroup(turns + 1, length))
  }

  async #writeGroup(): Promise<void> {
    const written = this.#group
    this.#group = []
    try {
      // A repeated transaction runs all work again.
      const answers = await this.write(() => {
        const batches = new Set(written.flatMap(({ batch }) => batch ?? []))
        for (const batch of batches) batch.begin()
        const done = written.map(({ work }) => work())
        for (const batch of batches) batch.end()
        return done
      })
      for (const [i, { resolve }] of written.entries()) resolve(answers[i])
    } catch (error) {
      for (const { reject } of written) reject(error)
    }
  }
}

/** Waits for a random time, so that waiting processes do not collide again and again. */
async function pause(): Promise<void> {
  await sleep(1 + Math.random() * 10)
}

function toFault(path: string, error: unknown): ToolgateError {
  if (error instanceof ToolgateError) return error
  return new ToolgateError('state_unavailable', 'The state cannot be read or written.', {
    detail: `${path}: ${messageOf(error)}`,
    cause: error,
  })
}

/** `TGST`, which marks a database as a Toolgate state. */
const APPLICATION_ID = 0x54475354
const SCHEMA_VERSION = 9

/** The tables of histories. Owners and names are JSON, which can escape a lone surrogate. */
const HISTORIES = `
  CREATE TABLE histories (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    generation TEXT NOT NULL,
    version INTEGER NOT NULL,
    kept TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    expires_at REAL NOT NULL
  ) STRICT;
  CREATE INDEX histories_expiry ON histories (expires_at);
  CREATE TABLE history_items (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    history INTEGER NOT NULL,
    version INTEGER NOT NULL,
    key TEXT,
    item TEXT NOT NULL,
    UNIQUE (history, key)
  ) STRICT;
  CREATE INDEX history_items_version ON history_items (history, version);

  -- The bytes of all histories, and of each owner. Changed in the transaction that changes a history, so they are exact.
  CREATE TABLE history_sums (whose TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TRIGGER history_made AFTER INSERT ON histories BEGIN
    INSERT INTO history_sums VALUES ('all', NEW.bytes), ('of ' || NEW.owner, NEW.bytes)
      ON CONFLICT (whose) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER history_changed AFTER UPDATE OF bytes ON histories BEGIN
    UPDATE history_sums SET bytes = bytes + NEW.bytes - OLD.bytes WHERE whose IN ('all', 'of ' || NEW.owner);
  END;
  CREATE TRIGGER history_ended AFTER DELETE ON histories BEGIN
    UPDATE history_sums SET bytes = bytes - OLD.bytes WHERE whose IN ('all', 'of ' || OLD.owner);
    DELETE FROM history_sums WHERE whose = 'of ' || OLD.owner AND bytes <= 0;
  END;
`

const CLAUSES = `
  CREATE TABLE clause_counts (
    id TEXT PRIMARY KEY,
    hits INTEGER NOT NULL,
    last_hit_at REAL,
    counted_since REAL NOT NULL,
    named_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
`

/** The table of grants. The names of the uses have one of their own, so that each use is counted once. */
const GRANTS = `
  CREATE TABLE grants (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    holder TEXT NOT NULL,
    tenant TEXT,
    user TEXT,
    tool TEXT NOT NULL,
    status TEXT NOT NULL,
    uses INTEGER NOT NULL,
    used INTEGER NOT NULL,
    granted_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    revocation TEXT,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX grants_holder ON grants (holder, tool) WHERE status = 'live';
  CREATE INDEX grants_expiry ON grants (expires_at);
  CREATE TABLE grant_uses (
    grant_id TEXT NOT NULL,
    spend TEXT NOT NULL,
    PRIMARY KEY (grant_id, spend)
  ) STRICT, WITHOUT ROWID;
`

const PEOPLE = `
  CREATE TABLE people (
    id TEXT PRIMARY KEY,
    who TEXT NOT NULL,
    first_seen_at REAL NOT NULL,
    last_seen_at REAL NOT NULL,
    noted_at REAL NOT NULL,
    record TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX people_who ON people (who);
  CREATE INDEX people_last ON people (last_seen_at);
  CREATE INDEX people_noted ON people (noted_at);
`

/** Counts histories for shadows separately from those that enforced rules read. */
const SHADOWS = `
  ALTER TABLE histories ADD COLUMN shadow INTEGER NOT NULL DEFAULT 0;
  DROP TRIGGER history_made;
  DROP TRIGGER history_changed;
  DROP TRIGGER history_ended;
  CREATE TRIGGER history_made AFTER INSERT ON histories BEGIN
    INSERT INTO history_sums VALUES (iif(NEW.shadow, 'shadows', 'all'), NEW.bytes), ('of ' || NEW.owner, NEW.bytes)
      ON CONFLICT (whose) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER history_changed AFTER UPDATE OF bytes ON histories BEGIN
    UPDATE history_sums SET bytes = bytes + NEW.bytes - OLD.bytes
      WHERE whose IN (iif(NEW.shadow, 'shadows', 'all'), 'of ' || NEW.owner);
  END;
  CREATE TRIGGER history_ended AFTER DELETE ON histories BEGIN
    UPDATE history_sums SET bytes = bytes - OLD.bytes
      WHERE whose IN (iif(OLD.shadow, 'shadows', 'all'), 'of ' || OLD.owner);
    DELETE FROM history_sums WHERE whose = 'of ' || OLD.owner AND bytes <= 0;
  END;
`

/**
 * The tables of a state. `machine` has one row: the boot and the clocks at the latest write, which carry times over a
 * boot, and numbers that only grow. Texts from outside are stored as bytes or as JSON, because UTF-8 cannot encode a
 * lone surrogate.
 *
 * A key's uses are numbered without gaps in the order of their times, so that counting those in a window is a
 * subtraction. A row has the uses of one time, from its number on.
 */
const TABLES = `
  CREATE TABLE machine (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    boot_id TEXT,
    monotonic_ms REAL NOT NULL,
    wall_ms REAL NOT NULL,
    ticket INTEGER NOT NULL DEFAULT 0,
    state_revision INTEGER NOT NULL DEFAULT 0,
    counter_keys INTEGER NOT NULL DEFAULT 0
  ) STRICT;

  CREATE TABLE state (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    value TEXT NOT NULL,
    expires_at REAL
  ) STRICT;
  CREATE INDEX state_expiry ON state (expires_at) WHERE expires_at IS NOT NULL;

  CREATE TABLE approvals (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    binding TEXT NOT NULL,
    asker TEXT NOT NULL,
    tenant TEXT,
    user TEXT,
    tool TEXT NOT NULL,
    chat TEXT,
    status TEXT NOT NULL,
    requested_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    decided_at REAL,
    decided_by TEXT,
    reason TEXT,
    spend TEXT,
    votes TEXT,
    characters INTEGER NOT NULL,
    request TEXT NOT NULL
  ) STRICT;
  CREATE INDEX approvals_binding ON approvals (binding, seq);
  CREATE INDEX approvals_pending ON approvals (asker, seq) WHERE status = 'pending';
  CREATE INDEX approvals_expiry ON approvals (expires_at);
  CREATE INDEX approvals_size ON approvals (characters);

  CREATE TABLE counter_keys (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    longest_ms REAL NOT NULL,
    next INTEGER NOT NULL,
    passes_at REAL NOT NULL
  ) STRICT;
  CREATE INDEX counter_keys_passing ON counter_keys (passes_at);
  CREATE TABLE counter_uses (
    key_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at_ms REAL NOT NULL,
    PRIMARY KEY (key_id, number)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX counter_uses_at ON counter_uses (key_id, at_ms);

  CREATE TABLE leases (
    session BLOB PRIMARY KEY,
    token INTEGER NOT NULL UNIQUE,
    expires_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE lease_waiters (
    session BLOB NOT NULL,
    ticket INTEGER NOT NULL,
    expires_at REAL NOT NULL,
    PRIMARY KEY (session, ticket)
  ) STRICT, WITHOUT ROWID;
${HISTORIES}
${CLAUSES}
${SHADOWS}
${PEOPLE}
${GRANTS}
`

export const STATE: Schema = {
  name: 'a state',
  applicationId: APPLICATION_ID,
  version: SCHEMA_VERSION,
  tables: TABLES,
  upgrades: new Map([
    [1, 'ALTER TABLE approvals ADD COLUMN chat TEXT'],
    [2, 'ALTER TABLE approvals ADD COLUMN spend TEXT'],
    [3, HISTORIES],
    [4, CLAUSES],
    [5, SHADOWS],
    [6, 'ALTER TABLE approvals ADD COLUMN votes TEXT'],
    [7, PEOPLE],
    [8, GRANTS],
  ]),
}
