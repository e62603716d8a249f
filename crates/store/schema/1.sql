-- Format 1 of sessions.db. Once released, this text is never changed: a change is a new file
-- beside it. What the file is (application_id) and which format it has (user_version) stand in
-- its header.

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
    newest  INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_by_newest ON sessions (newest);

CREATE TABLE entries (
    row     INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key),
    -- The entry's number in its session, from 1, without a gap.
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    json    TEXT    NOT NULL,
    UNIQUE (session, n)
) STRICT;

-- For people who look into the file: SELECT n, kind FROM log WHERE session = 'name'. The kind is
-- not a column, because a second home for what the JSON says could come to disagree with it.
CREATE VIEW log AS
SELECT sessions.id AS session, n, at, iif(json_valid(json), json ->> '$.entry', NULL) AS kind, json
FROM entries JOIN sessions ON sessions.key = entries.session
ORDER BY row;

-- The log is only appended to, and the file itself says so, whoever writes to it. What `INSERT OR
-- REPLACE` deletes fires no trigger, so what is inserted must be the next entry in a new row.
CREATE TRIGGER entries_are_appended BEFORE INSERT ON entries
WHEN NEW.n IS NOT (SELECT entries + 1 FROM sessions WHERE key = NEW.session)
  OR EXISTS (SELECT 1 FROM entries WHERE row = NEW.row)
BEGIN SELECT RAISE(ABORT, 'a log is only appended to: this is not its next entry'); END;

CREATE TRIGGER entries_are_counted AFTER INSERT ON entries
BEGIN
    UPDATE sessions SET entries = NEW.n, updated = NEW.at, newest = NEW.row WHERE key = NEW.session;
END;

CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'a log is only appended to: its entries are never changed'); END;

CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'a log is only appended to: its entries are never deleted'); END;

CREATE TRIGGER sessions_begin_once BEFORE INSERT ON sessions
WHEN NEW.entries <> 0 OR EXISTS (SELECT 1 FROM sessions WHERE id = NEW.id OR key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'a session begins once, and empty'); END;

CREATE TRIGGER sessions_only_grow BEFORE UPDATE ON sessions
WHEN NEW.key <> OLD.key OR NEW.id <> OLD.id OR NEW.created <> OLD.created OR NEW.entries < OLD.entries
BEGIN SELECT RAISE(ABORT, 'a session keeps its name, and its log only grows'); END;

CREATE TRIGGER sessions_are_not_deleted BEFORE DELETE ON sessions
BEGIN SELECT RAISE(ABORT, 'a session is never deleted: its log is kept'); END;
