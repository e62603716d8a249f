-- Format 5 of sessions.db: entries have checksums, and a whole session may be deleted. Once released,
-- this text is never changed.

-- The first 8 bytes of BLAKE3 over the entry's number and time, each as 8 bytes, and its JSON; all
-- big-endian. NULL of entries that were written before this format.
ALTER TABLE entries ADD COLUMN sum INTEGER;

-- The session that is being deleted: there is none but within that transaction.
CREATE TABLE deletions (
    session INTEGER PRIMARY KEY
) STRICT;

DROP TRIGGER entries_are_not_deleted;
CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
WHEN OLD.session NOT IN (SELECT session FROM deletions)
BEGIN SELECT RAISE(ABORT, 'a log is only appended to: its entries are never deleted'); END;

DROP TRIGGER sessions_are_not_deleted;
CREATE TRIGGER sessions_are_not_deleted BEFORE DELETE ON sessions
WHEN OLD.key NOT IN (SELECT session FROM deletions)
  OR EXISTS (SELECT 1 FROM entries WHERE session = OLD.key)
  OR EXISTS (SELECT 1 FROM sessions WHERE parent = OLD.key)
BEGIN SELECT RAISE(ABORT, 'a session is only deleted as a whole, and not while a fork shares its log'); END;

CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;
