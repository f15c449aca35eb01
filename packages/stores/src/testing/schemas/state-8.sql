-- The schema of a state of version 8: that of version 7, and people, with a few rows.
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
CREATE TABLE clause_counts (
  id TEXT PRIMARY KEY,
  hits INTEGER NOT NULL,
  last_hit_at REAL,
  counted_since REAL NOT NULL,
  named_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
PRAGMA application_id = 1413960532;
PRAGMA user_version = 8;

INSERT INTO machine VALUES (1, 'boot-1', 1000.0, 1.7e12, 7, 3, 1);
INSERT INTO state VALUES (1, CAST('halts/x' AS BLOB), '{"reason":"test"}', NULL);
INSERT INTO counter_keys VALUES (1, CAST('k' AS BLOB), 60000.0, 2, 1e15);
INSERT INTO counter_uses VALUES (1, 1, 900.0);
INSERT INTO approvals (seq, id, binding, asker, tenant, user, tool, status, requested_at, expires_at, decided_at, decided_by, characters, request)
  VALUES (1, 'a-1', 'b', 'u', NULL, '"vera"', '"t"', 'approved', 1000.0, 9e15, 1500.0, 'ada', 2,
    '{"user":"vera","tool":"t","definitionHash":"d","inputHash":"i","input":{}}');
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
ALTER TABLE approvals ADD COLUMN votes TEXT;
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
INSERT INTO people VALUES ('p-1', 'w-1', 1000.0, 2000.0, 2000.0,
  '{"user":"corp/vera","tenant":"acme","issuer":"https://id.example","by":"token","roles":["viewer"],"scopes":[],"rolesAt":2000,"clients":[]}');
