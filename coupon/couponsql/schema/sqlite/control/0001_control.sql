CREATE TABLE IF NOT EXISTS campaign (
  id             INTEGER PRIMARY KEY,
  name           TEXT    NOT NULL,
  kind           TEXT    NOT NULL,
  source         TEXT    NOT NULL,
  state          TEXT    NOT NULL,
  total          INTEGER NOT NULL,
  generated      INTEGER NOT NULL,
  per_user_limit INTEGER NOT NULL,
  valid_from     INTEGER NOT NULL,
  valid_until    INTEGER NOT NULL,
  valid_days     INTEGER NOT NULL,
  time_zone      TEXT    NOT NULL,
  value_minor    INTEGER NOT NULL,
  currency       TEXT    NOT NULL,
  void_kind      TEXT    NOT NULL,
  void_days      INTEGER NOT NULL,
  attributes     TEXT,
  created_at     INTEGER NOT NULL,
  version        INTEGER NOT NULL
) STRICT;

-- open_subject is the subject while the operation is not done, and NULL after:
-- one operation of a kind and subject at a time. lease_until is NULL then too, and
-- otherwise until when lease_owner works on it.
CREATE TABLE IF NOT EXISTS operation (
  id           INTEGER PRIMARY KEY,
  kind         TEXT    NOT NULL,
  subject      TEXT    NOT NULL,
  open_subject TEXT,
  campaign_id  INTEGER NOT NULL,
  batch_no     TEXT    NOT NULL,
  total        INTEGER NOT NULL,
  succeeded    INTEGER NOT NULL,
  failed       INTEGER NOT NULL,
  error        TEXT    NOT NULL,
  lease_owner  TEXT    NOT NULL DEFAULT '',
  lease_until  INTEGER
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS operation_open ON operation (kind, open_subject);
CREATE INDEX IF NOT EXISTS operation_lease ON operation (lease_until);

-- Every version of the shard map: 32 rows each.
CREATE TABLE IF NOT EXISTS shard_map (
  version       INTEGER NOT NULL,
  shard         INTEGER NOT NULL,
  database_name TEXT    NOT NULL,
  epoch         INTEGER NOT NULL,
  PRIMARY KEY (version, shard)
) STRICT, WITHOUT ROWID;

-- The leases of worker numbers; see coupon.Workers.
CREATE TABLE IF NOT EXISTS worker (
  number     INTEGER PRIMARY KEY,
  token      TEXT    NOT NULL,
  high_water INTEGER NOT NULL
) STRICT;
