-- Format 1 of sessions.db. Once released, this text is never changed: a change is a new file
-- beside it. What the file is (application_id) and which format it has (user_version) stand in
-- its header.

-- A fork's log is its parent's first entries and then its own, and only its own stand in `entries`.
CREATE TABLE sessions (
    key     INTEGER PRIMARY KEY,
    id      TEXT    NOT NULL UNIQUE
            CHECK (length(id) BETWEEN 1 AND 128 AND id NOT GLOB '*[^-A-Za-z0-9_.]*' AND id NOT GLOB '.*'),
    -- Seconds since 1970 of the first and of the last entry.
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    -- NULL until a user has said something.
    title   TEXT,
    entries INTEGER NOT NULL,
    -- The row of the last entry: rows only grow, so this orders sessions by their last write,
    -- whatever the clock did.
    newest  INTEGER NOT NULL,
    -- What a session is a fork of; NULL of one that began empty.
    parent  INTEGER REFERENCES sessions (key),
    -- The entries that it shares with its parent: its own are numbered from the next on.
    shared  INTEGER NOT NULL DEFAULT 0,
    -- The bytes of its own entries as JSON, so that a list of sessions need not read them; of a fork,
    -- without those that it shares.
    bytes   INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;

CREATE TABLE entries (
    row     INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key),
    -- The entry's number in its session, from 1, without a gap.
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    json    TEXT    NOT NULL,
    -- The first 8 bytes of BLAKE3 over the number and the time, each as 8 bytes, and the JSON; all
    -- big-endian.
    sum     INTEGER NOT NULL,
    UNIQUE (session, n)
) STRICT;

-- The session that is being deleted: there is none but within that transaction.
CREATE TABLE deletions (
    session INTEGER PRIMARY KEY
) STRICT;

-- The settings that a session was last run with, so that it can be continued with them. They are not
-- part of the log.
CREATE TABLE settings (
    session TEXT    PRIMARY KEY,
    -- What the program has written; it alone reads it.
    text    TEXT    NOT NULL CHECK (length(text) <= 65536),
    -- Seconds since 1970 when it was written.
    at      INTEGER NOT NULL
) STRICT;

-- What files contained before and after sessions changed them, so that they can be restored.
CREATE TABLE contents (
    -- Rows only grow, so that the lowest is the oldest.
    key   INTEGER PRIMARY KEY,
    -- BLAKE3 of the bytes.
    hash  BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    size  INTEGER NOT NULL,
    bytes BLOB    NOT NULL
) STRICT;

CREATE INDEX contents_by_size ON contents (size);

CREATE TABLE changes (
    row     INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key),
    -- The last entry of the log when the file was changed.
    entry   INTEGER NOT NULL,
    -- The tool call; NULL where a person restored the file.
    call    TEXT,
    -- Seconds since 1970.
    at      INTEGER NOT NULL,
    root    TEXT    NOT NULL,
    path    TEXT    NOT NULL,
    -- Hashes of contents, which may be deleted by now; NULL where the file did not exist.
    before  BLOB,
    after   BLOB
) STRICT;

CREATE INDEX changes_by_session ON changes (session, row);
CREATE INDEX changes_by_before  ON changes (before) WHERE before IS NOT NULL;
CREATE INDEX changes_by_after   ON changes (after)  WHERE after IS NOT NULL;

-- For people who look into the file: SELECT n, kind FROM log WHERE session = 'name'. A fork shows what it
-- shares as well. The kind is not a column, because a second home for what the JSON says could come to
-- disagree with it.
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

-- The log is only appended to, and the file itself says so, whoever writes to it. What `INSERT OR
-- REPLACE` deletes fires no trigger, so what is inserted must be the next entry in a new row.
CREATE TRIGGER entries_are_appended BEFORE INSERT ON entries
WHEN NEW.n IS NOT (SELECT entries + 1 FROM sessions WHERE key = NEW.session)
  OR EXISTS (SELECT 1 FROM entries WHERE row = NEW.row)
BEGIN SELECT RAISE(ABORT, 'a log is only appended to: this is not its next entry'); END;

CREATE TRIGGER entries_are_counted AFTER INSERT ON entries
BEGIN
    UPDATE sessions SET entries = NEW.n, updated = NEW.at, newest = NEW.row,
        bytes = bytes + octet_length(NEW.json) WHERE key = NEW.session;
END;

CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'a log is only appended to: its entries are never changed'); END;

CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
WHEN OLD.session NOT IN (SELECT session FROM deletions)
BEGIN SELECT RAISE(ABORT, 'a log is only appended to: its entries are never deleted'); END;

CREATE TRIGGER sessions_begin_once BEFORE INSERT ON sessions
WHEN NEW.entries <> NEW.shared OR NEW.bytes <> 0
  OR EXISTS (SELECT 1 FROM sessions WHERE id = NEW.id OR key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'a session begins once, with what it shares and nothing else'); END;

-- A parent is older, so that no session is its own ancestor.
CREATE TRIGGER sessions_share_what_there_is AFTER INSERT ON sessions
WHEN NOT iif(NEW.parent IS NULL, NEW.shared = 0,
             NEW.parent < NEW.key
             AND NEW.shared BETWEEN 0 AND (SELECT entries FROM sessions WHERE key = NEW.parent))
BEGIN SELECT RAISE(ABORT, 'a fork shares the first entries of an older session'); END;

CREATE TRIGGER sessions_only_grow BEFORE UPDATE ON sessions
WHEN NEW.key <> OLD.key OR NEW.id <> OLD.id OR NEW.created <> OLD.created OR NEW.entries < OLD.entries
  OR NEW.bytes < OLD.bytes OR NEW.parent IS NOT OLD.parent OR NEW.shared <> OLD.shared
BEGIN SELECT RAISE(ABORT, 'a session keeps its name and what it shares, and its log only grows'); END;

CREATE TRIGGER sessions_are_not_deleted BEFORE DELETE ON sessions
WHEN OLD.key NOT IN (SELECT session FROM deletions)
  OR EXISTS (SELECT 1 FROM entries WHERE session = OLD.key)
  OR EXISTS (SELECT 1 FROM sessions WHERE parent = OLD.key)
BEGIN SELECT RAISE(ABORT, 'a session is only deleted as a whole, and not while a fork shares its log'); END;
