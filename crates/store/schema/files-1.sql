-- Format 1 of files.db: what files contained before and after sessions changed them, so that they can
-- be restored. A copy: losing it loses no log. Once released, this text is never changed: a change is a
-- new file beside it.

CREATE TABLE contents (
    key   INTEGER PRIMARY KEY,
    -- BLAKE3 of the bytes.
    hash  BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    size  INTEGER NOT NULL,
    bytes BLOB    NOT NULL
) STRICT;

CREATE INDEX contents_by_size ON contents (size);

CREATE TABLE changes (
    -- Rows only grow, so that the lowest is the oldest.
    row       INTEGER PRIMARY KEY AUTOINCREMENT,
    session   TEXT    NOT NULL
              CHECK (length(session) BETWEEN 1 AND 128 AND session NOT GLOB '*[^-A-Za-z0-9_.]*' AND session NOT GLOB '.*'),
    -- The log's `born` in sessions.db: another log of the same name has other changes.
    log       BLOB,
    -- The last entry of the log when the file was changed.
    entry     INTEGER NOT NULL,
    -- The tool call; NULL where a person restored the file.
    call      TEXT,
    -- Seconds since 1970.
    at        INTEGER NOT NULL,
    root      TEXT    NOT NULL,
    path      TEXT    NOT NULL,
    -- Hashes; NULL where the file did not exist.
    before    BLOB,
    after     BLOB,
    -- 1 once the contents need not be kept any longer.
    forgotten INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX changes_by_session ON changes (session, row);
CREATE INDEX changes_kept       ON changes (row)    WHERE NOT forgotten;
CREATE INDEX changes_by_before  ON changes (before) WHERE NOT forgotten AND before IS NOT NULL;
CREATE INDEX changes_by_after   ON changes (after)  WHERE NOT forgotten AND after IS NOT NULL;
