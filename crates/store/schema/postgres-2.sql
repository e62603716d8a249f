-- Format 2 of a store in PostgreSQL: what runs are told from outside, and what they ask. Once released, this
-- text is never changed.

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

UPDATE format SET version = 2;
