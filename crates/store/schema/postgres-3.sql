-- Format 3 of a store in PostgreSQL: the size of each log, so that a list of sessions need not read their
-- entries. Once released, this text is never changed.

-- The bytes of its own entries as JSON; of a fork, without those that it shares.
ALTER TABLE sessions ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE sessions
SET bytes = (SELECT coalesce(sum(octet_length(json)), 0) FROM entries WHERE session = key);

UPDATE format SET version = 3;
