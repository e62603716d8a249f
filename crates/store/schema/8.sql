-- Format 8 of sessions.db: checkpoints, so that a long log need not be read to carry on. A checkpoint is
-- derived from the log; deleting this table's rows loses nothing. Once released, this text is never
-- changed.

CREATE TABLE checkpoints (
    -- At most one of each session.
    session INTEGER PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
    -- Number of entries that led to the state.
    entries INTEGER NOT NULL,
    -- The state as JSON; the program alone reads it.
    state   TEXT    NOT NULL,
    -- The first 8 bytes of BLAKE3 over the session's key, the number of entries and the checksum of the
    -- last of them, each as 8 bytes, big-endian, and the state.
    sum     INTEGER NOT NULL
) STRICT;
