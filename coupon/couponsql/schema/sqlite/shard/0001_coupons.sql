-- Texts are compared byte for byte. Times are milliseconds since 1970 in UTC,
-- 0 for none.

-- A coupon's columns are what statements ask for and keys are made of; all else is
-- its body, as JSON.
CREATE TABLE IF NOT EXISTS coupon_# (
  id          INTEGER PRIMARY KEY,
  campaign_id INTEGER NOT NULL,
  code        TEXT    NOT NULL,
  status      INTEGER NOT NULL,
  version     INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  body        TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS coupon_#_code ON coupon_# (code);
CREATE INDEX IF NOT EXISTS coupon_#_campaign ON coupon_# (campaign_id, id);

-- A line for each change of a coupon; a bulk step has one, of its first coupon.
-- Until it is published a line waits and is the outbox: event has the coupon as it
-- was then, too. Read those that wait by waiting, from the first one there is: lines
-- become visible out of order. once is what may happen to a coupon only once: an
-- order that redeems, a request that voids.
CREATE TABLE IF NOT EXISTS ledger_# (
  coupon_id INTEGER NOT NULL,
  version   INTEGER NOT NULL,
  waiting   INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  once      TEXT,
  event     TEXT    NOT NULL,
  PRIMARY KEY (coupon_id, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS ledger_#_once ON ledger_# (coupon_id, once);
CREATE INDEX IF NOT EXISTS ledger_#_waiting ON ledger_# (waiting, at);

-- The wallet. A row has all that a page of it shows.
CREATE TABLE IF NOT EXISTS user_coupon_# (
  user_id        TEXT    NOT NULL,
  coupon_id      INTEGER NOT NULL,
  valid_until    INTEGER NOT NULL,
  status         INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  campaign_id    INTEGER NOT NULL,
  code           TEXT    NOT NULL,
  order_no       TEXT    NOT NULL DEFAULT '',
  value_minor    INTEGER NOT NULL,
  currency       TEXT    NOT NULL,
  valid_from     INTEGER NOT NULL,
  reserved_until INTEGER NOT NULL DEFAULT 0,
  redeemed_order TEXT    NOT NULL DEFAULT '',
  redeemed_at    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, coupon_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS user_coupon_#_page ON user_coupon_# (user_id, valid_until, coupon_id);

-- number is NULL for a bind, which does not count.
CREATE TABLE IF NOT EXISTS claim_# (
  user_id     TEXT    NOT NULL,
  campaign_id INTEGER NOT NULL,
  request_no  TEXT    NOT NULL,
  number      INTEGER,
  coupon_id   INTEGER NOT NULL,
  done        INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (user_id, campaign_id, request_no)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS claim_#_number ON claim_# (user_id, campaign_id, number);

-- The claims that are not done. A table of their own: most claims never are in
-- it, and so pay for no index.
CREATE TABLE IF NOT EXISTS claim_pending_# (
  user_id     TEXT    NOT NULL,
  campaign_id INTEGER NOT NULL,
  request_no  TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (user_id, campaign_id, request_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS claim_pending_#_at ON claim_pending_# (at);

-- The cursor over a campaign's slice.
CREATE TABLE IF NOT EXISTS pool_# (
  campaign_id INTEGER PRIMARY KEY,
  last_id     INTEGER NOT NULL
) STRICT;

-- pending_since is NULL when the batch is done. quota is JSON, a number for each
-- shard; dry has a bit for each.
CREATE TABLE IF NOT EXISTS batch_# (
  campaign_id   INTEGER NOT NULL,
  batch_no      TEXT    NOT NULL,
  order_no      TEXT    NOT NULL,
  quantity      INTEGER NOT NULL,
  user_id       TEXT    NOT NULL,
  quota         TEXT    NOT NULL,
  dry           INTEGER NOT NULL,
  at            INTEGER NOT NULL,
  pending_since INTEGER,
  version       INTEGER NOT NULL,
  PRIMARY KEY (campaign_id, batch_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS batch_#_pending ON batch_# (pending_since);

-- ids are the coupons, 8 bytes each, big-endian. batch_no is '' for generation.
CREATE TABLE IF NOT EXISTS chunk_# (
  campaign_id INTEGER NOT NULL,
  batch_no    TEXT    NOT NULL,
  chunk       INTEGER NOT NULL,
  ids         BLOB    NOT NULL,
  PRIMARY KEY (campaign_id, batch_no, chunk)
) STRICT;

CREATE TABLE IF NOT EXISTS order_batch_# (
  order_no    TEXT    NOT NULL,
  campaign_id INTEGER NOT NULL,
  batch_no    TEXT    NOT NULL,
  PRIMARY KEY (order_no, campaign_id, batch_no)
) STRICT, WITHOUT ROWID;
