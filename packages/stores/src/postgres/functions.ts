/**
 * The functions of the schema. Each runs several statements in one call, so that no row stays locked while the server
 * waits for a client. They use the server's clock unless a time is passed. Each statement has its own index, even
 * before the tables are analysed, because a plan that scans a table would be kept while the table grows. JIT
 * compilation never pays off for these plans.
 */

/** Takes a free session if nobody has waited longer, or keeps a place in its queue. */
export function askLease(schema: string): string {
  return `
  CREATE FUNCTION ${schema}.ask_lease(
    asked_at double precision, asked bytea, place bigint, lease_ms double precision, place_ms double precision,
    OUT token bigint, OUT ticket bigint
  ) LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
  DECLARE
    now_ms double precision;
    first bigint;
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('${schema}' || encode(asked, 'hex'), 1));
    now_ms := coalesce(asked_at, extract(epoch FROM clock_timestamp()) * 1000);
    DELETE FROM ${schema}.lease_waiters w WHERE w.session = asked AND w.expires_at <= now_ms;
    -- A clock that was set back must not make a lease longer.
    UPDATE ${schema}.leases l SET expires_at = now_ms + lease_ms WHERE l.session = asked AND l.expires_at > now_ms + lease_ms;
    SELECT min(w.ticket) INTO first FROM ${schema}.lease_waiters w WHERE w.session = asked;
    IF coalesce(place <= first, first IS NULL)
      AND NOT EXISTS (SELECT FROM ${schema}.leases l WHERE l.session = asked AND l.expires_at > now_ms)
    THEN
      DELETE FROM ${schema}.lease_waiters w WHERE w.session = asked AND w.ticket = place;
      token := nextval('${schema}.tickets');
      INSERT INTO ${schema}.leases AS l VALUES (asked, token, now_ms + lease_ms)
        ON CONFLICT (session) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at;
      -- Rows of dead processes in sessions that are no longer requested.
      DELETE FROM ${schema}.leases l WHERE l.session IN (
        SELECT o.session FROM ${schema}.leases o WHERE o.expires_at <= now_ms LIMIT 2 FOR UPDATE SKIP LOCKED);
      DELETE FROM ${schema}.lease_waiters w WHERE (w.session, w.ticket) IN (
        SELECT o.session, o.ticket FROM ${schema}.lease_waiters o WHERE o.expires_at <= now_ms LIMIT 2 FOR UPDATE SKIP LOCKED);
    ELSE
      ticket := coalesce(place, nextval('${schema}.tickets'));
      INSERT INTO ${schema}.lease_waiters AS w VALUES (asked, ticket, now_ms + place_ms)
        ON CONFLICT ON CONSTRAINT lease_waiters_pkey DO UPDATE SET expires_at = excluded.expires_at;
    END IF;
  END $$;`
}

/**
 * A key is the hash of a limit's key and window. Each use is numbered by the total weight of earlier uses, so that
 * counting the uses in a window is a subtraction. A row's weight is the cost of one use, or 1.
 *
 * limit_clock is the latest time seen, to a tenth of a second: time never goes back for any key.
 */
export function limitTables(schema: string): string {
  return `
  CREATE TABLE ${schema}.limit_clock (id integer PRIMARY KEY CHECK (id = 1), last_ms double precision NOT NULL);
  INSERT INTO ${schema}.limit_clock VALUES (1, 0);
  CREATE TABLE ${schema}.limit_keys (
    key bytea PRIMARY KEY,
    total bigint NOT NULL,
    last_ms double precision NOT NULL,
    passes_at double precision NOT NULL
  ) WITH (fillfactor = 50);
  CREATE INDEX limit_keys_passing ON ${schema}.limit_keys (passes_at);
  CREATE TABLE ${schema}.limit_uses (
    key bytea NOT NULL,
    at_ms double precision NOT NULL,
    upto bigint NOT NULL,
    weight bigint NOT NULL,
    take text NOT NULL
  );
  CREATE INDEX limit_uses_order ON ${schema}.limit_uses (key, at_ms, upto);
${countLimits(schema)}
${giveBackLimits(schema)}
${settleLimits(schema)}`
}

/** Locks keys in the given order, which all callers share. Creates missing keys. */
function lockKeys(schema: string): string {
  return `
    FOR i IN 1 .. cardinality(keys) LOOP
      LOOP
        SELECT k.total, k.last_ms INTO total, seen FROM ${schema}.limit_keys k WHERE k.key = keys[i] FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO ${schema}.limit_keys VALUES (keys[i], 0, 0, 0) ON CONFLICT DO NOTHING;
      END LOOP;
      totals[i] := total;
      at_ms := greatest(at_ms, seen);
    END LOOP;`
}

/** The number from which uses are renumbered, so that numbers never exceed a bigint. */
const MOST_COUNTED = 4_000_000_000_000_000_000n

/**
 * Takes uses together or not at all, or only checks whether they could be taken. `keys` are sorted, each with its
 * window; `places` has the number of each use's key; `costs` has each use's cost. `waits`: whether the commit waits for
 * the disk.
 */
function countLimits(schema: string): string {
  return `
  CREATE FUNCTION ${schema}.count_limits(
    takes boolean, asked_at double precision, take text, keys bytea[], windows double precision[], places integer[],
    maxes bigint[], costs bigint[], waits boolean, OUT allowed boolean, OUT refused integer, OUT remaining bigint, OUT reset_ms double precision,
    OUT at_ms double precision
  ) LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
  DECLARE
    total bigint; seen double precision; now_ms double precision; last_seen double precision;
    totals bigint[] := '{}'; bases bigint[] := '{}'; earlier bigint[] := array_fill(0, ARRAY[cardinality(keys)]);
    base bigint; k integer; over bigint; last_ms double precision;
  BEGIN
    at_ms := 0;
    IF NOT waits THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
    IF takes THEN ${lockKeys(schema)}
    ELSE
      FOR i IN 1 .. cardinality(keys) LOOP
        SELECT l.total, l.last_ms INTO total, seen FROM ${schema}.limit_keys l WHERE l.key = keys[i];
        totals[i] := coalesce(total, 0);
        at_ms := greatest(at_ms, seen);
      END LOOP;
    END IF;
    -- Read after the locks, so that the uses of a key are in the order of their times.
    now_ms := coalesce(asked_at, extract(epoch FROM clock_timestamp()) * 1000);
    SELECT c.last_ms INTO last_seen FROM ${schema}.limit_clock c;
    at_ms := greatest(at_ms, now_ms, last_seen);
    FOR i IN 1 .. cardinality(keys) LOOP
      SELECT u.upto - u.weight INTO base FROM ${schema}.limit_uses u
        WHERE u.key = keys[i] AND u.at_ms > count_limits.at_ms - windows[i] ORDER BY u.at_ms, u.upto LIMIT 1;
      bases[i] := coalesce(base, totals[i]);
      IF takes AND totals[i] > ${MOST_COUNTED} THEN
        UPDATE ${schema}.limit_uses u SET upto = u.upto - bases[i] WHERE u.key = keys[i];
        totals[i] := totals[i] - bases[i];
        bases[i] := 0;
      END IF;
    END LOOP;
    allowed := true; refused := -1; reset_ms := 0;
    FOR i IN 1 .. cardinality(places) LOOP
      k := places[i];
      -- How much must leave before this use is within its limit.
      over := totals[k] - bases[k] + earlier[k] + costs[i] - maxes[i];
      IF over > 0 THEN
        SELECT u.at_ms INTO last_ms FROM ${schema}.limit_uses u
          WHERE u.key = keys[k] AND u.at_ms > count_limits.at_ms - windows[k] AND u.upto >= bases[k] + over
          ORDER BY u.at_ms, u.upto LIMIT 1;
        allowed := false; refused := i - 1; remaining := greatest(costs[i] - over, 0);
        reset_ms := coalesce(last_ms + windows[k] - at_ms, windows[k]);
        RETURN;
      END IF;
      remaining := least(remaining, -over);
      earlier[k] := earlier[k] + costs[i];
    END LOOP;
    IF NOT takes THEN RETURN; END IF;
    earlier := array_fill(0, ARRAY[cardinality(keys)]);
    FOR i IN 1 .. cardinality(places) LOOP
      CONTINUE WHEN costs[i] = 0;
      k := places[i];
      earlier[k] := earlier[k] + costs[i];
      INSERT INTO ${schema}.limit_uses (key, at_ms, upto, weight, take)
        VALUES (keys[k], count_limits.at_ms, totals[k] + earlier[k], costs[i], count_limits.take);
    END LOOP;
    FOR k IN 1 .. cardinality(keys) LOOP
      UPDATE ${schema}.limit_keys l SET total = totals[k] + earlier[k], last_ms = count_limits.at_ms,
        -- Most uses leave alone when a key passes, which has an index.
        passes_at = CASE WHEN l.passes_at >= count_limits.at_ms + windows[k] THEN l.passes_at
          ELSE count_limits.at_ms + 1.125 * windows[k] END
        WHERE l.key = keys[k];
      DELETE FROM ${schema}.limit_uses u WHERE u.ctid = ANY (ARRAY(
        SELECT o.ctid FROM ${schema}.limit_uses o
        WHERE o.key = keys[k] AND o.at_ms <= count_limits.at_ms - windows[k] LIMIT 64));
    END LOOP;
    UPDATE ${schema}.limit_clock c SET last_ms = count_limits.at_ms WHERE c.id = (
      SELECT o.id FROM ${schema}.limit_clock o WHERE o.last_ms < count_limits.at_ms - 100 FOR UPDATE SKIP LOCKED);
    IF random() < 0.125 THEN
      -- Keys whose windows are over. All locks of this take are held by now, so nobody waits in a circle.
      WITH gone AS (
        DELETE FROM ${schema}.limit_keys l WHERE l.key IN (
          SELECT o.key FROM ${schema}.limit_keys o WHERE o.passes_at <= count_limits.at_ms AND o.key <> ALL (keys)
          ORDER BY o.passes_at LIMIT 32 FOR UPDATE SKIP LOCKED)
        RETURNING l.key)
      DELETE FROM ${schema}.limit_uses u USING gone WHERE u.key = gone.key;
    END IF;
  END $$;`
}

/** Gives back the uses of a take, with the number for each key. Without the take's name, gives back the newest uses. */
function giveBackLimits(schema: string): string {
  return `
  CREATE FUNCTION ${schema}.give_back_limits(taken_at double precision, name text, keys bytea[], counts integer[])
  RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
  DECLARE
    total bigint; seen double precision; totals bigint[] := '{}'; at_ms double precision := 0; freed bigint; top bigint;
  BEGIN ${lockKeys(schema)}
    FOR i IN 1 .. cardinality(keys) LOOP
      WITH gone AS (
        DELETE FROM ${schema}.limit_uses u WHERE u.ctid = ANY (ARRAY(
          SELECT o.ctid FROM ${schema}.limit_uses o
          WHERE o.key = keys[i] AND (name IS NULL OR o.at_ms = taken_at AND o.take = name)
          ORDER BY o.at_ms DESC, o.upto DESC LIMIT counts[i]))
        RETURNING u.weight, u.upto)
      SELECT sum(g.weight), max(g.upto) INTO freed, top FROM gone g;
      IF freed > 0 THEN
        UPDATE ${schema}.limit_uses u SET upto = u.upto - freed WHERE u.key = keys[i] AND u.upto > top;
        UPDATE ${schema}.limit_keys k SET total = k.total - freed WHERE k.key = keys[i];
      END IF;
    END LOOP;
  END $$;`
}

/** Replaces the cost that a take has counted for each key, once. Uses that have left their window no longer change. */
function settleLimits(schema: string): string {
  return `
  CREATE FUNCTION ${schema}.settle_limits(
    taken_at double precision, name text, keys bytea[], befores bigint[], costs bigint[]
  ) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
  DECLARE
    total bigint; seen double precision; totals bigint[] := '{}'; at_ms double precision := 0; counted bigint; top bigint;
  BEGIN ${lockKeys(schema)}
    FOR i IN 1 .. cardinality(keys) LOOP
      SELECT sum(u.weight), max(u.upto) INTO counted, top FROM ${schema}.limit_uses u
        WHERE u.key = keys[i] AND u.at_ms = taken_at AND u.take = name;
      CONTINUE WHEN counted IS DISTINCT FROM befores[i] OR counted = costs[i];
      DELETE FROM ${schema}.limit_uses u WHERE u.key = keys[i] AND u.at_ms = taken_at AND u.take = name;
      UPDATE ${schema}.limit_uses u SET upto = u.upto + costs[i] - counted WHERE u.key = keys[i] AND u.upto > top;
      IF costs[i] > 0 THEN
        INSERT INTO ${schema}.limit_uses VALUES (keys[i], taken_at, top + costs[i] - counted, costs[i], name);
      END IF;
      UPDATE ${schema}.limit_keys k SET total = k.total + costs[i] - counted WHERE k.key = keys[i];
    END LOOP;
  END $$;`
}
