-- A coupon's columns are what statements ask for, all else is its body, as JSON. The
-- coupons move from the table with a column for everything. It is made again, empty,
-- for a step that died after it was dropped.
CREATE TABLE IF NOT EXISTS coupon_# (
  id          BIGINT        NOT NULL PRIMARY KEY,
  campaign_id BIGINT        NOT NULL,
  code        VARCHAR(64)   NOT NULL,
  status      TINYINT       NOT NULL,
  version     INT UNSIGNED  NOT NULL,
  created_at  BIGINT        NOT NULL,
  body        VARCHAR(4096) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  UNIQUE KEY code (code),
  KEY campaign (campaign_id, id)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

CREATE TABLE IF NOT EXISTS coupon_instance_# (
  id             BIGINT       NOT NULL PRIMARY KEY,
  campaign_id    BIGINT       NOT NULL,
  code           VARCHAR(64)  NOT NULL,
  status         TINYINT      NOT NULL,
  version        INT UNSIGNED NOT NULL,
  user_id        VARCHAR(64)  NOT NULL,
  order_no       VARCHAR(64)  NOT NULL,
  issued_at      BIGINT       NOT NULL,
  valid_from     BIGINT       NOT NULL,
  valid_until    BIGINT       NOT NULL,
  reserved_order VARCHAR(64)  NOT NULL,
  reserved_until BIGINT       NOT NULL,
  redeemed_order VARCHAR(64)  NOT NULL,
  redeemed_user  VARCHAR(64)  NOT NULL,
  redeemed_at    BIGINT       NOT NULL,
  kind           VARCHAR(32)  NOT NULL,
  value_minor    BIGINT       NOT NULL,
  currency       VARCHAR(3)   NOT NULL,
  void_kind      VARCHAR(32)  NOT NULL,
  void_days      SMALLINT     NOT NULL,
  attributes     VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  created_at     BIGINT       NOT NULL,
  updated_at     BIGINT       NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

INSERT INTO coupon_# (id, campaign_id, code, status, version, created_at, body)
  SELECT c.id, c.campaign_id, c.code, c.status, c.version, c.created_at, JSON_OBJECT(
    'user', c.user_id, 'order', c.order_no, 'issued_at', c.issued_at, 'valid_from', c.valid_from, 'valid_until', c.valid_until,
    'reserved_order', c.reserved_order, 'reserved_until', c.reserved_until,
    'redeemed_order', c.redeemed_order, 'redeemed_user', c.redeemed_user, 'redeemed_at', c.redeemed_at,
    'kind', c.kind, 'value_minor', c.value_minor, 'currency', c.currency, 'void_kind', c.void_kind, 'void_days', c.void_days,
    'attributes', JSON_EXTRACT(c.attributes, '$'), 'updated', c.updated_at)
  FROM coupon_instance_# AS c
  ON DUPLICATE KEY UPDATE coupon_#.version = c.version;

DROP TABLE coupon_instance_#;
