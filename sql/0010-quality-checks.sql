-- One row for each quality check. The newest row of a suite counts: while it has failed expectations, the Dag
-- watch_stream is red.
CREATE TABLE IF NOT EXISTS quality_check (
    id           BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    pipeline     VARCHAR(64)     NOT NULL,
    suite        VARCHAR(64)     NOT NULL COMMENT 'a file of quality/suites/, or the master table',
    checked_at   DATETIME(3)     NOT NULL DEFAULT UTC_TIMESTAMP(3),
    expectations INT UNSIGNED    NOT NULL COMMENT 'how many were checked',
    failed       INT UNSIGNED    NOT NULL COMMENT 'how many of them are not met',
    summary      VARCHAR(1000)   NOT NULL COMMENT 'the expectations that are not met; empty if all are',
    PRIMARY KEY (id),
    KEY (pipeline, suite, id)
);

GRANT SELECT, INSERT, DELETE ON quality_check TO loader@'%';
