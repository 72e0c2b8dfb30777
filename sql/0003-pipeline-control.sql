-- How an operator asks a pipeline's application to stop between two batches. Whether it runs at all is told by the
-- lock that it holds (spark_apps/running/lease.py), which the server lets go when the application dies.
CREATE TABLE IF NOT EXISTS pipeline_control (
    pipeline       VARCHAR(64)  NOT NULL,
    stop_requested BOOLEAN      NOT NULL DEFAULT FALSE,
    changed_at     TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
    PRIMARY KEY (pipeline)
);

GRANT SELECT, INSERT, UPDATE ON pipeline_control TO loader@'%';
