-- Format 4 of archive.db: items have checksums. Once released, this text is never changed.

-- The first 8 bytes of BLAKE3 over the item's number, as 8 bytes, big-endian, and its JSON. NULL of items
-- that were archived before this format.
ALTER TABLE bodies ADD COLUMN sum INTEGER;
