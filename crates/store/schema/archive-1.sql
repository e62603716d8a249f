-- Format 1 of archive.db: what has left the views of sessions, whole, so that it can be recalled
-- and searched. A copy: the log in sessions.db is the truth. Once released, this text is never
-- changed: a change is a new file beside it.

CREATE TABLE sessions (
    key       INTEGER PRIMARY KEY,
    id        TEXT    NOT NULL UNIQUE
              CHECK (length(id) BETWEEN 1 AND 128 AND id NOT GLOB '*[^-A-Za-z0-9_.]*' AND id NOT GLOB '.*'),
    -- What is held of it, counted by the triggers below.
    bytes     INTEGER NOT NULL DEFAULT 0,
    held      INTEGER NOT NULL DEFAULT 0,
    expired   INTEGER NOT NULL DEFAULT 0,
    -- The highest number of which not even that it has expired is known; -1 where there is none.
    forgotten INTEGER NOT NULL DEFAULT -1,
    -- The log's `born` in sessions.db; NULL where nobody has said it. Of another log of the same name,
    -- as where sessions.db was moved away, nothing is found here.
    log       BLOB
) STRICT;

CREATE TABLE items (
    -- Rows only grow, so that the lowest is the oldest.
    row     INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key),
    -- The message's number in its session: item m12 has 12.
    seq     INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    tool    TEXT,
    call    TEXT,
    -- The length of its text.
    bytes   INTEGER NOT NULL,
    -- Seconds since 1970 when it left, and why.
    left_at INTEGER NOT NULL,
    why     TEXT    NOT NULL,
    -- The bytes of its body; NULL once it has expired and the body is gone.
    held    INTEGER,
    UNIQUE (session, seq)
) STRICT;

CREATE INDEX items_held    ON items (session, row) WHERE held IS NOT NULL;
CREATE INDEX items_oldest  ON items (row)          WHERE held IS NOT NULL;
CREATE INDEX items_expired ON items (session, row) WHERE held IS NULL;
CREATE INDEX items_by_call ON items (session, call) WHERE call IS NOT NULL;

CREATE TABLE bodies (
    row     INTEGER PRIMARY KEY REFERENCES items (row) ON DELETE CASCADE,
    -- The whole message as JSON.
    message TEXT    NOT NULL,
    -- The first 8 bytes of BLAKE3 over the item's number, as 8 bytes, big-endian, and its JSON.
    sum     INTEGER NOT NULL
) STRICT;

-- The words of each text, prepared by the program, and one word that names the session, so that a
-- search of one session does not look at the others. It holds no text of its own.
CREATE VIRTUAL TABLE words USING fts5 (
    owner, text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0'
);

-- The words of the index as a table, to look up those that begin with some letters.
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, instance);

CREATE TRIGGER items_come AFTER INSERT ON items
BEGIN
    UPDATE sessions SET bytes = bytes + NEW.held, held = held + 1 WHERE key = NEW.session;
END;

CREATE TRIGGER items_expire AFTER UPDATE OF held ON items
WHEN OLD.held IS NOT NULL AND NEW.held IS NULL
BEGIN
    UPDATE sessions SET bytes = bytes - OLD.held, held = held - 1, expired = expired + 1
    WHERE key = OLD.session;
    DELETE FROM bodies WHERE row = OLD.row;
    DELETE FROM words WHERE rowid = OLD.row;
END;

CREATE TRIGGER items_are_forgotten AFTER DELETE ON items
BEGIN
    UPDATE sessions SET expired = expired - 1, forgotten = max(forgotten, OLD.seq)
    WHERE key = OLD.session;
END;

CREATE TRIGGER items_expire_before_they_are_forgotten BEFORE DELETE ON items
WHEN OLD.held IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an item expires before it is forgotten'); END;
