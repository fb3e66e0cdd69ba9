CREATE TABLE IF NOT EXISTS campaign (
  id             BIGINT       NOT NULL PRIMARY KEY,
  name           VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  kind           VARCHAR(32)  NOT NULL,
  source         VARCHAR(32)  NOT NULL,
  state          VARCHAR(16)  NOT NULL,
  total          BIGINT       NOT NULL,
  generated      BIGINT       NOT NULL,
  per_user_limit INT          NOT NULL,
  valid_from     BIGINT       NOT NULL,
  valid_until    BIGINT       NOT NULL,
  valid_days     INT          NOT NULL,
  time_zone      VARCHAR(64)  NOT NULL,
  value_minor    BIGINT       NOT NULL,
  currency       VARCHAR(3)   NOT NULL,
  void_kind      VARCHAR(32)  NOT NULL,
  void_days      INT          NOT NULL,
  attributes     VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  created_at     BIGINT       NOT NULL,
  version        INT UNSIGNED NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

-- open_subject is the subject while the operation is not done, and NULL after:
-- one operation of a kind and subject at a time. lease_until is NULL then too, and
-- otherwise until when lease_owner works on it.
CREATE TABLE IF NOT EXISTS operation (
  id           BIGINT       NOT NULL PRIMARY KEY,
  kind         VARCHAR(32)  NOT NULL,
  subject      VARCHAR(160) NOT NULL,
  open_subject VARCHAR(160) NULL,
  campaign_id  BIGINT       NOT NULL,
  batch_no     VARCHAR(64)  NOT NULL,
  total        BIGINT       NOT NULL,
  succeeded    BIGINT       NOT NULL,
  failed       BIGINT       NOT NULL,
  error        VARCHAR(64)  NOT NULL,
  lease_owner  VARCHAR(128) NOT NULL DEFAULT '',
  lease_until  BIGINT       NULL,
  UNIQUE KEY open (kind, open_subject),
  KEY lease (lease_until)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

-- Every version of the shard map: 32 rows each.
CREATE TABLE IF NOT EXISTS shard_map (
  version       BIGINT      NOT NULL,
  shard         TINYINT     NOT NULL,
  database_name VARCHAR(64) NOT NULL,
  epoch         BIGINT      NOT NULL,
  PRIMARY KEY (version, shard)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

-- The leases of worker numbers; see coupon.Workers.
CREATE TABLE IF NOT EXISTS worker (
  number     TINYINT UNSIGNED NOT NULL PRIMARY KEY,
  token      VARCHAR(32)      NOT NULL,
  high_water BIGINT           NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;
