-- Format 2 of sessions.db: what providers have said of their windows when they refused a request.
-- Once released, this text is never changed.

CREATE TABLE windows (
    -- Where the model answers, and its name; never a key.
    endpoint TEXT    PRIMARY KEY CHECK (length(endpoint) BETWEEN 1 AND 512),
    tokens   INTEGER NOT NULL CHECK (tokens > 0),
    -- Seconds since 1970 when it was said.
    at       INTEGER NOT NULL
) STRICT;
