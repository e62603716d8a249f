-- Format 2 of archive.db: of which log the items of a session are. Once released, this text is never
-- changed.

-- The log's `born` in sessions.db; NULL where nobody has said it. Of another log of the same name,
-- as where sessions.db was moved away, nothing is found here.
ALTER TABLE sessions ADD COLUMN log BLOB;
