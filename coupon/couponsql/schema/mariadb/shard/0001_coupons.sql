-- Texts are compared byte for byte. Times are milliseconds since 1970 in UTC,
-- 0 for none.

-- A coupon's columns are what statements ask for and keys are made of; all else is
-- its body, as JSON. TEXT, because the server copies whole rows for each statement,
-- and a VARCHAR is as long there as it may get.
CREATE TABLE IF NOT EXISTS coupon_# (
  id          BIGINT        NOT NULL PRIMARY KEY,
  campaign_id BIGINT        NOT NULL,
  code        VARCHAR(64)   NOT NULL,
  status      TINYINT       NOT NULL,
  version     INT UNSIGNED  NOT NULL,
  created_at  BIGINT        NOT NULL,
  body        TEXT          CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  UNIQUE KEY code (code),
  KEY campaign (campaign_id, id)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

-- A line for each change of a coupon; a bulk step has one, of its first coupon.
-- Until it is published a line waits and is the outbox: event has the coupon as it
-- was then, too. Read those that wait by waiting, from the first one there is: lines
-- become visible out of order. once is what may happen to a coupon only once: an
-- order that redeems, a request that voids.
CREATE TABLE IF NOT EXISTS ledger_# (
  coupon_id BIGINT       NOT NULL,
  version   INT UNSIGNED NOT NULL,
  waiting   TINYINT      NOT NULL,
  at        BIGINT       NOT NULL,
  once      VARCHAR(80)  NULL,
  event     MEDIUMTEXT   CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (coupon_id, version),
  UNIQUE KEY once (coupon_id, once),
  KEY waiting (waiting, at)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

-- The wallet. A row has all that a page of it shows.
CREATE TABLE IF NOT EXISTS user_coupon_# (
  user_id        VARCHAR(64)  NOT NULL,
  coupon_id      BIGINT       NOT NULL,
  valid_until    BIGINT       NOT NULL,
  status         TINYINT      NOT NULL,
  version        INT UNSIGNED NOT NULL,
  campaign_id    BIGINT       NOT NULL,
  code           VARCHAR(64)  NOT NULL,
  order_no       VARCHAR(64)  NOT NULL DEFAULT '',
  value_minor    BIGINT       NOT NULL,
  currency       VARCHAR(3)   NOT NULL,
  valid_from     BIGINT       NOT NULL,
  reserved_until BIGINT       NOT NULL DEFAULT 0,
  redeemed_order VARCHAR(64)  NOT NULL DEFAULT '',
  redeemed_at    BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, coupon_id),
  KEY page (user_id, valid_until, coupon_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

-- number is NULL for a bind, which does not count.
CREATE TABLE IF NOT EXISTS claim_# (
  user_id     VARCHAR(64) NOT NULL,
  campaign_id BIGINT      NOT NULL,
  request_no  VARCHAR(64) NOT NULL,
  number      INT         NULL,
  coupon_id   BIGINT      NOT NULL,
  done        TINYINT     NOT NULL,
  at          BIGINT      NOT NULL,
  PRIMARY KEY (user_id, campaign_id, request_no),
  UNIQUE KEY number (user_id, campaign_id, number)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

-- The claims that are not done. A table of their own: most claims never are in
-- it, and so pay for no index.
CREATE TABLE IF NOT EXISTS claim_pending_# (
  user_id     VARCHAR(64) NOT NULL,
  campaign_id BIGINT      NOT NULL,
  request_no  VARCHAR(64) NOT NULL,
  at          BIGINT      NOT NULL,
  PRIMARY KEY (user_id, campaign_id, request_no),
  KEY at (at)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

-- The cursor over a campaign's slice.
CREATE TABLE IF NOT EXISTS pool_# (
  campaign_id BIGINT NOT NULL PRIMARY KEY,
  last_id     BIGINT NOT NULL
) ENGINE=InnoDB;

-- pending_since is NULL when the batch is done. quota is JSON, a number for each
-- shard; dry has a bit for each.
CREATE TABLE IF NOT EXISTS batch_# (
  campaign_id   BIGINT       NOT NULL,
  batch_no      VARCHAR(64)  NOT NULL,
  order_no      VARCHAR(64)  NOT NULL,
  quantity      BIGINT       NOT NULL,
  user_id       VARCHAR(64)  NOT NULL,
  quota         VARCHAR(700) NOT NULL,
  dry           INT UNSIGNED NOT NULL,
  at            BIGINT       NOT NULL,
  pending_since BIGINT       NULL,
  version       INT UNSIGNED NOT NULL,
  PRIMARY KEY (campaign_id, batch_no),
  KEY pending (pending_since)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

-- ids are the coupons, 8 bytes each, big-endian. batch_no is '' for generation.
CREATE TABLE IF NOT EXISTS chunk_# (
  campaign_id BIGINT      NOT NULL,
  batch_no    VARCHAR(64) NOT NULL,
  chunk       INT         NOT NULL,
  ids         BLOB        NOT NULL,
  PRIMARY KEY (campaign_id, batch_no, chunk)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

CREATE TABLE IF NOT EXISTS order_batch_# (
  order_no    VARCHAR(64) NOT NULL,
  campaign_id BIGINT      NOT NULL,
  batch_no    VARCHAR(64) NOT NULL,
  PRIMARY KEY (order_no, campaign_id, batch_no)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;
