-- Format 6 of sessions.db: who may write to which session, so that a process that stood still and wakes
-- up again cannot. No clock is read: a process that waits for a session watches whether the beats of its
-- holder go on. Once released, this text is never changed.

-- Open stores that hold leases. Keys are never used again.
CREATE TABLE holders (
    key   INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Counted up by the holder about once a second.
    beats INTEGER NOT NULL
) STRICT;

CREATE TABLE leases (
    -- The first 16 bytes of BLAKE3 of the session's name: a session that was deleted leaves no name.
    session BLOB    PRIMARY KEY CHECK (length(session) = 16),
    -- Counted up whenever the session gets another writer: only the newest may write.
    token   INTEGER NOT NULL,
    holder  INTEGER NOT NULL REFERENCES holders (key)
) STRICT, WITHOUT ROWID;

CREATE INDEX leases_by_holder ON leases (holder);
