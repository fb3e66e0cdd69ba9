-- Who publishes the shard's outbox: one row, whose id is 1. deadline is by this
-- database's clock; epoch grows with each new holder.
CREATE TABLE IF NOT EXISTS relay_# (
  id       INTEGER PRIMARY KEY,
  token    TEXT    NOT NULL,
  epoch    INTEGER NOT NULL,
  deadline INTEGER NOT NULL
) STRICT;

-- The coupons that an order redeemed, on the order's shard.
CREATE TABLE IF NOT EXISTS order_redeemed_# (
  order_no  TEXT    NOT NULL,
  coupon_id INTEGER NOT NULL,
  voided    INTEGER NOT NULL,
  version   INTEGER NOT NULL,
  PRIMARY KEY (order_no, coupon_id)
) STRICT, WITHOUT ROWID;
