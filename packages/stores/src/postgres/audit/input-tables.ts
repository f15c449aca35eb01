/**
 * Returns the table of sealed inputs, for the migrations. It is separate from the records, so that inputs can be
 * removed first.
 */
export function inputTables(schema: string): string {
  const inputs = `${schema}.audit_inputs`
  return `
  CREATE TABLE ${inputs} (
    chain integer NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    box text NOT NULL,
    PRIMARY KEY (chain, seq)
  );
  -- What is encrypted cannot be compressed.
  ALTER TABLE ${inputs} ALTER COLUMN box SET STORAGE EXTERNAL;
  CREATE INDEX audit_inputs_at ON ${inputs} (at);

  -- Appends records to a chain, as append_audit does, together with the sealed inputs of some of them.
  CREATE FUNCTION ${schema}.append_audit_inputs(
    of_chain integer, after_seq bigint, after_head text, new_head text, new_root text,
    ats bigint[], events text[], records text[], on_disk bigint, new_tree text,
    box_seqs bigint[], box_ats bigint[], boxes text[]
  ) RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE
    other bigint;
  BEGIN
    other := ${schema}.append_audit(
      of_chain, after_seq, after_head, new_head, new_root, ats, events, records, on_disk, new_tree);
    IF other IS NULL THEN
      INSERT INTO ${inputs} (chain, seq, at, box)
      SELECT of_chain, given.seq, given.at, given.box FROM unnest(box_seqs, box_ats, boxes) AS given (seq, at, box)
      ON CONFLICT DO NOTHING;
    END IF;
    RETURN other;
  END $$;
  `
}
