-- Files of the shed store: events whose batch had no time for them. Which events they are is in `<pipeline>_shed`, which
-- accounting counts; here is what is needed to take them back (spark_apps/enriching/shedding.py).
CREATE TABLE IF NOT EXISTS shed_segment (
    segment   BIGINT UNSIGNED   NOT NULL AUTO_INCREMENT,
    pipeline  VARCHAR(64)       NOT NULL,
    source    SMALLINT UNSIGNED NOT NULL,
    file      VARCHAR(100)      NOT NULL COMMENT 'below shed/<pipeline>/ of the state',
    fields    INT UNSIGNED      NOT NULL COMMENT 'tells the names and types of the file''s columns',
    events    INT UNSIGNED      NOT NULL,
    oldest_at DATETIME(3)       NOT NULL COMMENT 'UTC; no event of it came earlier, by Kafka''s timestamp',
    shed_at   DATETIME(3)       NOT NULL DEFAULT UTC_TIMESTAMP(3),
    taken_by  CHAR(32)                   COMMENT 'the job that has taken its events back; it goes when that job is done',
    PRIMARY KEY (segment),
    KEY (pipeline, oldest_at)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON shed_segment TO loader@'%';
