-- Latencies are counted by bucket: a percentile of many batches follows from the sums of their buckets.
ALTER TABLE batch_counters
    ADD COLUMN IF NOT EXISTS latency_p50_seconds DOUBLE,
    ADD COLUMN IF NOT EXISTS latency_p99_seconds DOUBLE,
    ADD COLUMN IF NOT EXISTS latency_seconds     JSON COMMENT 'number of events by upper bound of their latency in seconds';

ALTER TABLE batch_counters
    ADD COLUMN IF NOT EXISTS changes_waiting INT UNSIGNED COMMENT 'committed changes of master rows that the snapshot lacks, at most 100,000';

-- The counters of a pipeline in steps of time, for plots. They are written with the rows of batch_counters.
CREATE TABLE IF NOT EXISTS counter_rollup (
    pipeline     VARCHAR(64)       NOT NULL,
    step_seconds SMALLINT UNSIGNED NOT NULL,
    at           DATETIME          NOT NULL COMMENT 'UTC; the beginning of the step',
    counts       JSON              NOT NULL COMMENT 'of the batches that ended in the step: sum, newest and most',
    PRIMARY KEY (pipeline, step_seconds, at)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON counter_rollup TO loader@'%';
