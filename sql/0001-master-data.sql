-- The authoritative master data, and how often the stream is estimated to ask for each row.
CREATE TABLE IF NOT EXISTS product (
    product_id  BIGINT UNSIGNED NOT NULL COMMENT 'the key that sources use',
    product_key INT UNSIGNED    NOT NULL COMMENT 'the key that the warehouse uses',
    name        VARCHAR(60)     NOT NULL,
    vendor      VARCHAR(40)     NOT NULL,
    category    VARCHAR(20)     NOT NULL,
    price_cents INT UNSIGNED    NOT NULL,
    updated_at  TIMESTAMP(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
    PRIMARY KEY (product_id),
    UNIQUE KEY (product_key)
);

CREATE TABLE IF NOT EXISTS product_frequency (
    product_id       BIGINT UNSIGNED NOT NULL,
    access_frequency DOUBLE          NOT NULL COMMENT 'estimated share of events that name this product',
    estimated_at     TIMESTAMP(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
    PRIMARY KEY (product_id)
);

GRANT INSERT, UPDATE, SELECT ON product_frequency TO loader@'%';
GRANT SELECT ON product TO loader@'%';
