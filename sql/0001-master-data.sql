-- The authoritative master data. What Freshet keeps beside a master table (estimates, ranked copy, change log) is made
-- for any table that a pipeline's file names, when it is prepared: spark_apps/master/tables.py.
CREATE TABLE IF NOT EXISTS product (
    product_id   BIGINT UNSIGNED NOT NULL COMMENT 'the key that sources use',
    product_key  INT UNSIGNED    NOT NULL COMMENT 'the key that the warehouse uses',
    name         VARCHAR(60)     NOT NULL,
    vendor       VARCHAR(40)     NOT NULL,
    category     VARCHAR(20)     NOT NULL,
    price_cents  INT UNSIGNED    NOT NULL,
    barcode      CHAR(13)        NOT NULL COMMENT 'EAN-13',
    weight_grams INT UNSIGNED    NOT NULL,
    description  VARCHAR(120)    NOT NULL,
    updated_at   TIMESTAMP(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
    PRIMARY KEY (product_id),
    UNIQUE KEY (product_key)
);

GRANT SELECT ON product TO loader@'%';
