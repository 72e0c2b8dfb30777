-- Whether a pipeline's long-running programs are to run. Airflow's runs, retries and restarts obey it. It replaces the
-- stop request of pipeline_control.
CREATE TABLE IF NOT EXISTS wish (
    pipeline  VARCHAR(64)  NOT NULL,
    program   VARCHAR(32)  NOT NULL COMMENT 'enrich_stream or generator',
    running   BOOLEAN      NOT NULL COMMENT 'whether it is to run',
    since     DATETIME(3)  NOT NULL DEFAULT UTC_TIMESTAMP(3) COMMENT 'UTC; when that was wished',
    wished_by VARCHAR(250) NOT NULL COMMENT 'a user of Airflow, or the program itself when it has ended',
    run_id    VARCHAR(250) NOT NULL DEFAULT '' COMMENT 'Airflow''s run that watches the program',
    options   JSON         NOT NULL DEFAULT '{}',
    reason    VARCHAR(1000) NOT NULL DEFAULT '' COMMENT 'why it stopped, if a failure stopped it',
    PRIMARY KEY (pipeline, program)
);

-- One row a start of such a program.
CREATE TABLE IF NOT EXISTS program_start (
    id         BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    pipeline   VARCHAR(64)     NOT NULL,
    program    VARCHAR(32)     NOT NULL,
    started_at DATETIME(3)     NOT NULL DEFAULT UTC_TIMESTAMP(3),
    host       VARCHAR(250)    NOT NULL,
    pid        INT UNSIGNED    NOT NULL,
    ended_at   DATETIME(3)              COMMENT 'null while it runs, or when its keeper was killed',
    exit_code  INT,
    last_line  VARCHAR(1000)            COMMENT 'of its log',
    PRIMARY KEY (id),
    KEY (pipeline, program, started_at)
);

GRANT SELECT, INSERT, UPDATE ON wish TO loader@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON program_start TO loader@'%';

DROP TABLE IF EXISTS pipeline_control;
