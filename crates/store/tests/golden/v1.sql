PRAGMA application_id = 1349282157;
PRAGMA user_version = 1;
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
CREATE VIEW log AS
SELECT sessions.id AS session, n, at, iif(json_valid(json), json ->> '$.entry', NULL) AS kind, json
FROM entries JOIN sessions ON sessions.key = entries.session
ORDER BY row;
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
INSERT INTO sessions (id, created, updated, entries, newest) VALUES ('b', 1767225600, 1767225600, 0, 0);
INSERT INTO entries (session, n, at, json) VALUES (1, 1, 1767225600, '{"entry":"opened","format":1}');
INSERT INTO sessions (id, created, updated, entries, newest) VALUES ('a', 1767225601, 1767225601, 0, 0);
INSERT INTO entries (session, n, at, json) VALUES (2, 1, 1767225601, '{"entry":"opened","format":1}');
INSERT INTO entries (session, n, at, json) VALUES (2, 2, 1767225602, '{"entry":"started","run":1,"model":"test/model","system":"You are a test.","tools":["read"]}');
INSERT INTO entries (session, n, at, json) VALUES (1, 2, 1767225603, '{"entry":"started","run":1,"model":"test/model","system":"You are a test.","tools":["read"]}');
UPDATE sessions SET title = 'task 1' WHERE key = 1;
INSERT INTO entries (session, n, at, json) VALUES (1, 3, 1767225603, '{"entry":"said","message":{"role":"user","parts":[{"type":"text","text":"task 1\nwith a second line"}]}}');
