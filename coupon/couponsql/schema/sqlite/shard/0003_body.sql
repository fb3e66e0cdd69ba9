-- A coupon's columns are what statements ask for, all else is its body, as JSON. The
-- coupons move from the table with a column for everything.
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

INSERT INTO coupon_# (id, campaign_id, code, status, version, created_at, body)
  SELECT id, campaign_id, code, status, version, created_at, json_object(
    'user', user_id, 'order', order_no, 'issued_at', issued_at, 'valid_from', valid_from, 'valid_until', valid_until,
    'reserved_order', reserved_order, 'reserved_until', reserved_until,
    'redeemed_order', redeemed_order, 'redeemed_user', redeemed_user, 'redeemed_at', redeemed_at,
    'kind', kind, 'value_minor', value_minor, 'currency', currency, 'void_kind', void_kind, 'void_days', void_days,
    'attributes', json(attributes), 'updated', updated_at)
  FROM coupon_instance_#;

DROP TABLE coupon_instance_#;
