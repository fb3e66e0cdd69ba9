-- Campaigns that were created under an idempotency key, for a day.
CREATE TABLE IF NOT EXISTS once (
  once_key    VARCHAR(320) NOT NULL PRIMARY KEY,
  digest      VARCHAR(64)  NOT NULL,
  campaign_id BIGINT       NOT NULL,
  until       BIGINT       NOT NULL,
  KEY until (until)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;
