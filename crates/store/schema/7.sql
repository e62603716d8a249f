-- Format 7 of sessions.db: the size of each log, so that a list of sessions need not read their entries.
-- Once released, this text is never changed.

-- The bytes of its own entries as JSON; of a fork, without those that it shares.
ALTER TABLE sessions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE sessions
SET bytes = (SELECT ifnull(sum(octet_length(json)), 0) FROM entries WHERE session = key);

DROP TRIGGER entries_are_counted;
CREATE TRIGGER entries_are_counted AFTER INSERT ON entries
BEGIN
    UPDATE sessions SET entries = NEW.n, updated = NEW.at, newest = NEW.row,
        bytes = bytes + octet_length(NEW.json) WHERE key = NEW.session;
END;

DROP TRIGGER sessions_begin_once;
CREATE TRIGGER sessions_begin_once BEFORE INSERT ON sessions
WHEN NEW.entries <> NEW.shared OR NEW.bytes <> 0 OR NEW.born IS NULL
  OR EXISTS (SELECT 1 FROM sessions WHERE id = NEW.id OR key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'a session begins once, with what it shares and nothing else'); END;

DROP TRIGGER sessions_only_grow;
CREATE TRIGGER sessions_only_grow BEFORE UPDATE ON sessions
WHEN NEW.key <> OLD.key OR NEW.id <> OLD.id OR NEW.created <> OLD.created OR NEW.entries < OLD.entries
  OR NEW.bytes < OLD.bytes OR NEW.parent IS NOT OLD.parent OR NEW.shared <> OLD.shared
  OR NEW.items <> OLD.items OR NEW.born IS NOT OLD.born
BEGIN SELECT RAISE(ABORT, 'a session keeps its name and what it shares, and its log only grows'); END;
