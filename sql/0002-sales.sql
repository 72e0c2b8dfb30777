-- Every event lands in exactly one of three tables, under its position in the stream: (source, partition, offset).

CREATE TABLE IF NOT EXISTS source (
    source   SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'one incarnation of a topic',
    topic    VARCHAR(249)      NOT NULL,
    topic_id VARCHAR(40)       NOT NULL COMMENT 'a topic that is deleted and made again has another',
    PRIMARY KEY (source),
    UNIQUE KEY (topic, topic_id)
);

CREATE TABLE IF NOT EXISTS sales_enriched (
    source          SMALLINT UNSIGNED NOT NULL,
    kafka_partition SMALLINT UNSIGNED NOT NULL,
    kafka_offset    BIGINT UNSIGNED   NOT NULL,
    event_id        UUID              NOT NULL,
    product_key     INT UNSIGNED      NOT NULL,
    store_id        INT UNSIGNED      NOT NULL,
    quantity        INT UNSIGNED      NOT NULL,
    price_cents     INT UNSIGNED      NOT NULL COMMENT 'the price of that moment',
    sold_at         DATETIME(3)       NOT NULL,
    PRIMARY KEY (source, kafka_partition, kafka_offset)
);

CREATE TABLE IF NOT EXISTS sales_unmatched (
    source          SMALLINT UNSIGNED NOT NULL,
    kafka_partition SMALLINT UNSIGNED NOT NULL,
    kafka_offset    BIGINT UNSIGNED   NOT NULL,
    product_id      BIGINT            NULL COMMENT 'a key that the master data does not have, or none at all',
    event           BLOB              NOT NULL,
    PRIMARY KEY (source, kafka_partition, kafka_offset)
);

CREATE TABLE IF NOT EXISTS sales_rejected (
    source          SMALLINT UNSIGNED NOT NULL,
    kafka_partition SMALLINT UNSIGNED NOT NULL,
    kafka_offset    BIGINT UNSIGNED   NOT NULL,
    reason          VARCHAR(200)      NOT NULL,
    event           LONGBLOB          NULL,
    PRIMARY KEY (source, kafka_partition, kafka_offset)
);

-- What analysts query: narrow facts, joined with the descriptions when they are asked for.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW sales AS
SELECT e.event_id, e.sold_at, e.store_id, e.quantity, p.product_key, p.product_id, p.name, p.vendor, p.category,
       e.price_cents / 100 AS price, e.quantity * e.price_cents / 100 AS total
FROM sales_enriched AS e
JOIN product AS p USING (product_key);

GRANT SELECT, INSERT ON source TO loader@'%';
GRANT SELECT, INSERT, UPDATE ON sales_enriched TO loader@'%';
GRANT SELECT, INSERT, UPDATE ON sales_unmatched TO loader@'%';
GRANT SELECT, INSERT, UPDATE ON sales_rejected TO loader@'%';
