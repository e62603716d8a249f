-- Format 3 of sessions.db: forks. A fork's log is its parent's first entries and then its own, and
-- only its own stand in `entries`. Once released, this text is never changed.

-- What a session is a fork of; NULL of one that began empty.
ALTER TABLE sessions ADD COLUMN parent INTEGER REFERENCES sessions (key);

-- The entries that it shares with its parent: its own are numbered from the next on.
ALTER TABLE sessions ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;

-- The number of the first item that it does not share: what the archive has of its parent's items
-- below that is to be found in the fork too.
ALTER TABLE sessions ADD COLUMN items INTEGER NOT NULL DEFAULT 0;

-- Tells this log from any other of its name, in a file that was moved away.
ALTER TABLE sessions ADD COLUMN born BLOB;
UPDATE sessions SET born = randomblob(16);

DROP TRIGGER sessions_begin_once;
CREATE TRIGGER sessions_begin_once BEFORE INSERT ON sessions
WHEN NEW.entries <> NEW.shared OR NEW.born IS NULL
  OR EXISTS (SELECT 1 FROM sessions WHERE id = NEW.id OR key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'a session begins once, with what it shares and nothing else'); END;

-- A parent is older, so that no session is its own ancestor.
CREATE TRIGGER sessions_share_what_there_is AFTER INSERT ON sessions
WHEN NOT iif(NEW.parent IS NULL, NEW.shared = 0 AND NEW.items = 0,
             NEW.items >= 0 AND NEW.parent < NEW.key
             AND NEW.shared BETWEEN 0 AND (SELECT entries FROM sessions WHERE key = NEW.parent))
BEGIN SELECT RAISE(ABORT, 'a fork shares the first entries of an older session'); END;

DROP TRIGGER sessions_only_grow;
CREATE TRIGGER sessions_only_grow BEFORE UPDATE ON sessions
WHEN NEW.key <> OLD.key OR NEW.id <> OLD.id OR NEW.created <> OLD.created OR NEW.entries < OLD.entries
  OR NEW.parent IS NOT OLD.parent OR NEW.shared <> OLD.shared OR NEW.items <> OLD.items
  OR NEW.born IS NOT OLD.born
BEGIN SELECT RAISE(ABORT, 'a session keeps its name and what it shares, and its log only grows'); END;

-- As before, for people who look into the file; a fork shows what it shares as well.
DROP VIEW log;
CREATE VIEW log AS
WITH RECURSIVE kin (id, key, entries, parent, shared) AS (
    SELECT id, key, entries, parent, shared FROM sessions
    UNION ALL
    SELECT kin.id, sessions.key, min(kin.entries, kin.shared), sessions.parent, sessions.shared
    FROM kin JOIN sessions ON sessions.key = kin.parent
)
SELECT kin.id AS session, n, at, iif(json_valid(json), json ->> '$.entry', NULL) AS kind, json
FROM kin JOIN entries ON entries.session = kin.key AND entries.n <= kin.entries
ORDER BY row;
