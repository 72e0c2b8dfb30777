-- One row a batch, for watching (docs/counters.md). Whether every event has landed is asked of the pipeline's tables.
CREATE TABLE IF NOT EXISTS batch_counters (
    id                   BIGINT UNSIGNED   NOT NULL AUTO_INCREMENT,
    pipeline             VARCHAR(64)       NOT NULL,
    source               SMALLINT UNSIGNED NOT NULL,
    batch                BIGINT            NOT NULL COMMENT 'Spark''s number; a batch that is done again has it again',
    finished_at          DATETIME(3)       NOT NULL COMMENT 'UTC',
    seconds              DOUBLE            NOT NULL,
    events               BIGINT UNSIGNED   NOT NULL COMMENT 'enriched + unmatched + rejected',
    enriched             BIGINT UNSIGNED   NOT NULL COMMENT 'cache_hits + not_cached',
    unmatched            BIGINT UNSIGNED   NOT NULL COMMENT 'absent + without_key',
    rejected             BIGINT UNSIGNED   NOT NULL,
    rejected_by_reason   JSON              NOT NULL,
    cache_hits           BIGINT UNSIGNED   NOT NULL COMMENT 'matched by a master row in memory',
    not_cached           BIGINT UNSIGNED   NOT NULL COMMENT 'matched by a master row of a page that was read for it',
    absent               BIGINT UNSIGNED   NOT NULL COMMENT 'no master row has the key',
    without_key          BIGINT UNSIGNED   NOT NULL COMMENT 'the key is null',
    pages_read           BIGINT UNSIGNED   NOT NULL,
    source_seconds       DOUBLE            NOT NULL COMMENT 'of all tasks together, as the following',
    read_seconds         DOUBLE            NOT NULL,
    join_seconds         DOUBLE            NOT NULL,
    load_seconds         DOUBLE            NOT NULL,
    messages_seconds     DOUBLE            NOT NULL,
    latency_mean_seconds DOUBLE                     COMMENT 'from Kafka''s timestamp to the commit',
    latency_most_seconds DOUBLE,
    lag                  BIGINT                     COMMENT 'events that waited in the topic when the row was written',
    snapshot_version     INT UNSIGNED      NOT NULL,
    snapshot_age_seconds DOUBLE            NOT NULL,
    worker_bytes         BIGINT UNSIGNED   NOT NULL COMMENT 'real memory of the largest Python worker',
    PRIMARY KEY (id),
    KEY (pipeline, finished_at)
);

GRANT SELECT, INSERT, DELETE ON batch_counters TO loader@'%';
