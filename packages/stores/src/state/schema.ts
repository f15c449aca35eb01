/** `TGST`, which tells our files from other databases. */
export const APPLICATION_ID = 0x54475354
export const SCHEMA_VERSION = 2

/** What makes a file of an earlier version one of the next, by the version it has. */
export const UPGRADES: ReadonlyMap<number, string> = new Map([
  [1, 'ALTER TABLE approvals ADD COLUMN chat TEXT; PRAGMA user_version = 2'],
])

/**
 * `machine` is one row: the boot and the clocks as of the latest write, by which times are carried over a boot, and
 * what grows for ever. Texts that anybody may choose are kept as bytes or as JSON, as a lone surrogate is no UTF-8.
 *
 * A key's uses are numbered without a gap in the order of their times, so that counting those in a window is a
 * subtraction, however many they are.
 */
export const SCHEMA = `
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

  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`
