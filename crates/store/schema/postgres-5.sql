-- Format 5 of a store in PostgreSQL: checkpoints, as sessions.db has them. Once released, this text is
-- never changed.

CREATE TABLE checkpoints (
    session BIGINT PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
    -- Number of entries that led to the state.
    entries BIGINT NOT NULL,
    -- The state as JSON; the program alone reads it.
    state   TEXT   NOT NULL,
    -- The first 8 bytes of BLAKE3 over the session's key, the number of entries and the checksum of the
    -- last of them, each as 8 bytes, big-endian, and the state.
    sum     BIGINT NOT NULL
);

UPDATE format SET version = 5;
