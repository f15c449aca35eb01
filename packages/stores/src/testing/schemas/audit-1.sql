-- The schema of an audit of version 1, as commit 1749f644 made it, with records without a chain.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  event TEXT NOT NULL,
  tool TEXT NOT NULL,
  user_id TEXT,
  record TEXT NOT NULL
) STRICT;
PRAGMA application_id = 1413955924;
PRAGMA user_version = 1;

INSERT INTO audit VALUES (1, 'tool_result', 't', 'vera',
  '{"catalog_revision":1,"event":"tool_result","policy_revision":1,"seq":1,"session_id":"s","tool":"t","tool_call_id":"a","ts":"2026-11-21T09:00:00.000Z","user_id":"vera"}');
INSERT INTO audit VALUES (2, 'tool_result', 't', NULL,
  '{"catalog_revision":1,"event":"tool_result","policy_revision":1,"seq":2,"tool":"t","tool_call_id":"b","ts":"2026-11-21T09:00:01.500Z"}');
