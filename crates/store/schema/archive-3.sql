-- Format 3 of archive.db: the words of the index as a table, to look up those that begin with some
-- letters. Once released, this text is never changed.

CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, instance);
