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
    -- What it is a fork of, the entries that it shares, and the first item that it does not.
    parent  BIGINT REFERENCES sessions (key),
    shared  BIGINT NOT NULL DEFAULT 0,
    items   BIGINT NOT NULL DEFAULT 0,
    -- The bytes of its own entries as JSON, so that a list of sessions need not read them; of a fork,
    -- without those that it shares.
    bytes   BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX sessions_by_newest ON sessions (newest);
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
    -- Counted up by the holder as long as it lives.
    beats BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE leases (
    session TEXT   PRIMARY KEY,
    -- Counted up whenever the session gets another writer: only the newest may write.
    token   BIGINT NOT NULL,
    -- NULL if the session is free.
    holder  BIGINT
);

CREATE TABLE windows (
    endpoint TEXT   PRIMARY KEY,
    tokens   BIGINT NOT NULL CHECK (tokens > 0),
    at       BIGINT NOT NULL
);

-- What has left the views of sessions, whole, so that it can be recalled and searched.
CREATE TABLE shelves (
    key       BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    session   TEXT   NOT NULL UNIQUE,
    -- The highest number of which not even that it has expired is known; -1 if there is none.
    forgotten BIGINT NOT NULL DEFAULT -1,
    -- Items that were ever taken in.
    taken     BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE items (
    -- Rows of a shelf only grow, so that the lowest is the oldest.
    row     BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    shelf   BIGINT NOT NULL REFERENCES shelves (key) ON DELETE CASCADE,
    -- The message's number in its session: item m12 has 12.
    seq     BIGINT NOT NULL,
    -- Seconds since 1970 when it left.
    left_at BIGINT NOT NULL,
    -- The first 16 bytes of BLAKE3 of the call's id, of a result.
    call    BYTEA,
    -- JSON: kind, tool, call, length of the text, and why it left.
    about   TEXT   NOT NULL,
    -- The bytes of its message. This and what follows is NULL once the item has expired.
    held    BIGINT,
    -- The whole message as JSON.
    message TEXT,
    -- The first 8 bytes of BLAKE3 over the item's number, as 8 bytes, and its message; big-endian.
    sum     BIGINT,
    -- Words that name the shelf and the blocks of 1,024 and of 16,384 items that it was taken in with; then
    -- the words of the text in their order.
    words   TEXT,
    UNIQUE (shelf, seq)
);

CREATE INDEX items_by_row  ON items (shelf, row) INCLUDE (held);
CREATE INDEX items_by_age  ON items (left_at) WHERE held IS NOT NULL;
CREATE INDEX items_by_call ON items (shelf, call) WHERE call IS NOT NULL;
CREATE INDEX items_by_word ON items USING gin (array_to_tsvector(string_to_array(words, ' ')))
    -- In kilobytes: what was added last is searched without an index until it is merged.
    WITH (gin_pending_list_limit = 256);

-- The words of the items that are held, so that those which begin in some way can be found.
CREATE TABLE vocabulary (
    shelf BIGINT NOT NULL REFERENCES shelves (key) ON DELETE CASCADE,
    word  TEXT   COLLATE "C" NOT NULL,
    PRIMARY KEY (shelf, word)
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

-- Which sessions somebody follows from elsewhere.
CREATE TABLE watchers (
    session TEXT        PRIMARY KEY,
    -- By the clock of the server. What is appended until then is announced.
    until   TIMESTAMPTZ NOT NULL
);

CREATE TABLE format (version BIGINT NOT NULL);
INSERT INTO format VALUES (1);
