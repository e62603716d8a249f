-- Format 1 of a store in PostgreSQL: as sessions.db has it, without settings. Once released, this text is
-- never changed.

CREATE SEQUENCE writes;

CREATE TABLE sessions (
    key     BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id      TEXT   NOT NULL UNIQUE CHECK (id ~ '^[-A-Za-z0-9_][-A-Za-z0-9_.]{0,127}$'),
    -- Seconds since 1970 of the first and of the last entry.
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    -- NULL until a user has said something.
    title   TEXT,
    entries BIGINT NOT NULL,
    -- A number from `writes`: it orders sessions by their last write, whatever the clocks say.
    newest  BIGINT NOT NULL,
    -- What it is a fork of, and the entries that it shares.
    parent  BIGINT REFERENCES sessions (key),
    shared  BIGINT NOT NULL DEFAULT 0,
    -- The bytes of its own entries as JSON, so that a list of sessions need not read them; of a fork,
    -- without those that it shares.
    bytes   BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;

CREATE TABLE entries (
    session BIGINT NOT NULL REFERENCES sessions (key),
    -- The entry's number in its session, from 1, without a gap.
    n       BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    json    TEXT   NOT NULL,
    -- The first 8 bytes of BLAKE3 over the number and the time, each as 8 bytes, and the JSON; big-endian.
    sum     BIGINT NOT NULL,
    PRIMARY KEY (session, n)
);

CREATE TABLE holders (
    key   BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    -- The holder moves it on as long as it lives.
    until TIMESTAMPTZ NOT NULL
);

CREATE TABLE leases (
    session TEXT   PRIMARY KEY,
    -- Counted up whenever the session gets another writer: only the newest may write.
    token   BIGINT NOT NULL,
    -- NULL if the session is free.
    holder  BIGINT
);

-- What runs are told from outside.
CREATE TABLE messages (
    -- Only grows, so that the lowest is the oldest.
    row     BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    session TEXT   NOT NULL,
    -- The request whose run it is for.
    run     TEXT   NOT NULL,
    -- The sender's name for it: it is taken once, however often it is sent.
    id      TEXT   NOT NULL,
    kind    TEXT   NOT NULL,
    text    TEXT   NOT NULL,
    UNIQUE (session, run, id)
);

-- What runs ask.
CREATE TABLE questions (
    -- The idempotency key of the call that is asked about.
    key       TEXT    PRIMARY KEY,
    session   TEXT    NOT NULL,
    tool      TEXT    NOT NULL,
    arguments TEXT    NOT NULL,
    protected BOOLEAN NOT NULL,
    -- JSON; NULL until somebody has answered.
    answer    TEXT
);

CREATE INDEX questions_by_session ON questions (session);

CREATE TABLE format (version BIGINT NOT NULL);
INSERT INTO format VALUES (3);
