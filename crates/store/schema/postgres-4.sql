-- Format 4 of a store in PostgreSQL: which sessions somebody follows from elsewhere. Once released, this text
-- is never changed.

CREATE TABLE watchers (
    session TEXT        PRIMARY KEY,
    -- By the clock of the server. What is appended until then is announced.
    until   TIMESTAMPTZ NOT NULL
);

UPDATE format SET version = 4;
