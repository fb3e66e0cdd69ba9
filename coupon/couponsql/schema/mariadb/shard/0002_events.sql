-- Who publishes the shard's outbox: one row, whose id is 1. deadline is by this
-- database's clock; epoch grows with each new holder.
CREATE TABLE IF NOT EXISTS relay_# (
  id       INT         NOT NULL PRIMARY KEY,
  token    VARCHAR(32) NOT NULL,
  epoch    BIGINT      NOT NULL,
  deadline BIGINT      NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;

-- The coupons that an order redeemed, on the order's shard.
CREATE TABLE IF NOT EXISTS order_redeemed_# (
  order_no  VARCHAR(64)  NOT NULL,
  coupon_id BIGINT       NOT NULL,
  voided    TINYINT      NOT NULL,
  version   INT UNSIGNED NOT NULL,
  PRIMARY KEY (order_no, coupon_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin;
