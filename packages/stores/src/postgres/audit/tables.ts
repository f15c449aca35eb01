/**
 * The tables of the audit, for the migrations.
 *
 * A record is stored as the hashed text. A quoted field name occurs nowhere else in this JSON, so filters search the
 * text. Only `at` and `event`, which counts use, are also columns.
 */
export function auditTables(schema: string): string {
  const parts = [chains, records, appendAudit, auditHorizon, log, signAudit, pruneAudit]
  return parts.map((part) => part(schema)).join('')
}

function chains(schema: string): string {
  return `
  -- A chain: what one start of one replica has recorded. leaf_*: what the newest leaf of the log says about it; NULL for none.
  -- local_seq: the newest record on the replica's own disk, where it writes there first; else NULL.
  -- tree: the tree of its records after some of them, as JSON; pruned_tree: after those that may be removed.
  -- pruned_leaf: the leaves of the log before this one are about records that may be removed, or about other chains.
  CREATE TABLE ${schema}.audit_chains (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    replica text NOT NULL,
    incarnation text NOT NULL,
    seq bigint NOT NULL,
    head text NOT NULL,
    root text NOT NULL,
    status text NOT NULL,
    renewed_at timestamptz NOT NULL,
    leaf_status text,
    leaf_seq bigint,
    local_seq bigint,
    tree text,
    pruned_seq bigint NOT NULL DEFAULT 0,
    pruned_tree text,
    pruned_leaf bigint NOT NULL DEFAULT 0,
    UNIQUE (replica, incarnation)
  ) WITH (fillfactor = 10);
  `
}

function records(schema: string): string {
  const audit = `${schema}.audit`
  return `
  CREATE SEQUENCE ${schema}.audit_positions;
  CREATE TABLE ${audit} (
    chain integer NOT NULL,
    seq bigint NOT NULL,
    position bigint NOT NULL,
    at bigint NOT NULL,
    event text NOT NULL,
    record text NOT NULL,
    PRIMARY KEY (chain, seq)
  );
  CREATE UNIQUE INDEX audit_position ON ${audit} (position);
  CREATE INDEX audit_at ON ${audit} USING brin (at);

  -- The newest position that is given to a record. A sequence that nobody has used says 1.
  CREATE FUNCTION ${schema}.audit_last() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM ${schema}.audit_positions
  $$;
  `
}

function appendAudit(schema: string): string {
  const audit = `${schema}.audit`
  return `
  -- Appends records to a chain. Returns NULL if it has them then, and otherwise the first number whose record is another one.
  CREATE FUNCTION ${schema}.append_audit(
    of_chain integer, after_seq bigint, after_head text, new_head text, new_root text,
    ats bigint[], events text[], records text[], on_disk bigint DEFAULT NULL, new_tree text DEFAULT NULL
  ) RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE
    other bigint;
  BEGIN
    UPDATE ${schema}.audit_chains SET seq = after_seq + cardinality(records), head = new_head, root = new_root,
      local_seq = on_disk, tree = coalesce(new_tree, tree), status = 'live', renewed_at = clock_timestamp()
    WHERE id = of_chain AND seq = after_seq AND head = after_head;
    IF NOT FOUND THEN
      SELECT min(after_seq + given.i) INTO other FROM unnest(records) WITH ORDINALITY AS given (record, i)
      LEFT JOIN ${audit} AS kept ON kept.chain = of_chain AND kept.seq = after_seq + given.i
      WHERE kept.record IS DISTINCT FROM given.record;
      RETURN other;
    END IF;
    -- Taken before the first position is: audit_horizon finds the lock until the positions are committed.
    PERFORM pg_advisory_xact_lock_shared(${lockKeys(schema)} + ${schema}.audit_last());
    INSERT INTO ${audit} (chain, seq, position, at, event, record)
    SELECT of_chain, after_seq + given.i, nextval('${schema}.audit_positions'), given.at, given.event, given.record
    FROM unnest(ats, events, records) WITH ORDINALITY AS given (at, event, record, i);
    RETURN NULL;
  END $$;
  `
}

function auditHorizon(schema: string): string {
  return `
  -- Returns a position up to which every record is committed or never will be. Who then reads skips none.
  CREATE FUNCTION ${schema}.audit_horizon() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    newest bigint := ${schema}.audit_last();
    under_way bigint;
  BEGIN
    SELECT min(held.key) - ${lockKeys(schema)} INTO under_way
    FROM (SELECT (classid::bigint << 32) | objid::bigint AS key FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS held
    WHERE held.key >= ${lockKeys(schema)} AND held.key < ${lockKeys(schema)} + (1::bigint << 48);
    RETURN least(newest, under_way);
  END $$;
  `
}

function log(schema: string): string {
  return `
  -- One row: the log, whose leaves say where the chains end. frontier: the roots of its full subtrees, the largest first.
  -- verifiers: the public keys of its notes.
  CREATE TABLE ${schema}.audit_log (
    id integer PRIMARY KEY CHECK (id = 1),
    size bigint NOT NULL,
    frontier text[] NOT NULL,
    verifiers text[] NOT NULL,
    signer text,
    signer_until timestamptz NOT NULL
  ) WITH (fillfactor = 10);
  INSERT INTO ${schema}.audit_log VALUES (1, 0, '{}', '{}', NULL, '-infinity');
  CREATE TABLE ${schema}.audit_leaves (
    index bigint PRIMARY KEY,
    chain integer,
    leaf text NOT NULL
  );
  CREATE INDEX audit_leaves_chain ON ${schema}.audit_leaves (chain, index);
  -- note: a signed tlog-checkpoint.
  CREATE TABLE ${schema}.audit_notes (
    size bigint PRIMARY KEY,
    note text NOT NULL
  );
  `
}

function signAudit(schema: string): string {
  return `
  -- Adds leaves to the log and signs it, unless the log has grown or another process signs meanwhile. Returns whether it has.
  CREATE FUNCTION ${schema}.sign_audit(
    by_signer text, old_size bigint, new_frontier text[], chains integer[], statuses text[], seqs bigint[], leaves text[],
    new_note text
  ) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE ${schema}.audit_log SET size = old_size + cardinality(leaves), frontier = new_frontier
    WHERE size = old_size AND signer = by_signer;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    INSERT INTO ${schema}.audit_leaves (index, chain, leaf)
    SELECT old_size + given.i - 1, given.chain, given.leaf
    FROM unnest(chains, leaves) WITH ORDINALITY AS given (chain, leaf, i);
    INSERT INTO ${schema}.audit_notes (size, note) VALUES (old_size + cardinality(leaves), new_note);
    UPDATE ${schema}.audit_chains AS kept SET leaf_status = given.status, leaf_seq = given.seq
    FROM (SELECT DISTINCT ON (chain) chain, status, seq FROM unnest(chains, statuses, seqs) WITH ORDINALITY
      AS given (chain, status, seq, i) WHERE chain IS NOT NULL ORDER BY chain, i DESC) AS given
    WHERE kept.id = given.chain;
    RETURN true;
  END $$;
  `
}

function pruneAudit(schema: string): string {
  return `
  -- The same, and says that the records of a chain up to one may be removed, as a leaf does.
  CREATE FUNCTION ${schema}.prune_audit(
    by_signer text, old_size bigint, new_frontier text[], chains integer[], statuses text[], seqs bigint[], leaves text[],
    new_note text, of_chain integer, up_to bigint, its_tree text, next_leaf bigint
  ) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT ${schema}.sign_audit(by_signer, old_size, new_frontier, chains, statuses, seqs, leaves, new_note) THEN
      RETURN false;
    END IF;
    UPDATE ${schema}.audit_chains SET pruned_seq = up_to, pruned_tree = its_tree, pruned_leaf = next_leaf WHERE id = of_chain;
    RETURN true;
  END $$;
  `
}

/** Returns the first of a schema's advisory lock keys, to which the position is added. 15 bits come from the schema. */
function lockKeys(schema: string): string {
  return `((hashtext('toolgate audit ${schema}')::bigint & 32767) << 48)`
}
