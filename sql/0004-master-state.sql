-- One row a master table: what was estimated last, and how far its change log is in order. The tables beside a master
-- table are made when it is prepared: spark_apps/master/tables.py.
CREATE TABLE IF NOT EXISTS master_estimate (
    master   VARCHAR(64)     NOT NULL,
    until_ms BIGINT UNSIGNED NOT NULL COMMENT 'end of the last interval, in milliseconds of Kafka''s timestamps',
    weight   DOUBLE          NOT NULL COMMENT 'decayed number of events, those of forgotten keys included',
    PRIMARY KEY (master)
);

CREATE TABLE IF NOT EXISTS master_changes (
    master   VARCHAR(64)     NOT NULL,
    position BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'of the newest change that has one',
    forgot   BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'changes up to this position were removed from the log',
    PRIMARY KEY (master)
);

GRANT SELECT, INSERT, UPDATE ON master_estimate TO loader@'%';
GRANT SELECT, UPDATE ON master_changes TO loader@'%';
GRANT CREATE TEMPORARY TABLES ON * TO loader@'%';
