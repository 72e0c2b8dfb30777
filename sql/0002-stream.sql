-- What all pipelines share. A pipeline's own tables are made from its file (spark_apps/pipeline/tables.py).

CREATE TABLE IF NOT EXISTS source (
    source   SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'one incarnation of a topic',
    topic    VARCHAR(249)      NOT NULL,
    topic_id VARCHAR(40)       NOT NULL COMMENT 'a topic that is deleted and made again has another',
    PRIMARY KEY (source),
    UNIQUE KEY (topic, topic_id)
);

-- How far a pipeline has read: written in the transaction that writes what the events became.
CREATE TABLE IF NOT EXISTS progress (
    pipeline        VARCHAR(64)       NOT NULL,
    source          SMALLINT UNSIGNED NOT NULL,
    kafka_partition SMALLINT UNSIGNED NOT NULL,
    first_offset    BIGINT UNSIGNED   NOT NULL,
    next_offset     BIGINT UNSIGNED   NOT NULL,
    PRIMARY KEY (pipeline, source, kafka_partition)
);

GRANT SELECT, INSERT ON source TO loader@'%';
GRANT SELECT, INSERT, UPDATE ON progress TO loader@'%';
