-- Format 4 of sessions.db: the settings that a session was last run with, so that it can be
-- continued with them. They are not part of the log: they are not exported, and a log that comes from
-- elsewhere brings none. Once released, this text is never changed.

CREATE TABLE settings (
    session TEXT    PRIMARY KEY,
    -- What the program has written; it alone reads it.
    text    TEXT    NOT NULL CHECK (length(text) <= 65536),
    -- Seconds since 1970 when it was written.
    at      INTEGER NOT NULL
) STRICT;
