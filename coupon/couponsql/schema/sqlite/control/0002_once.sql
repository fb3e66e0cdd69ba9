-- Campaigns that were created under an idempotency key, for a day.
CREATE TABLE IF NOT EXISTS once (
  once_key    TEXT    PRIMARY KEY,
  digest      TEXT    NOT NULL,
  campaign_id INTEGER NOT NULL,
  until       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS once_until ON once (until);
