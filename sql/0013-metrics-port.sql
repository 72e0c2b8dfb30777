-- Where a running application serves its metrics: each takes the first free port.
ALTER TABLE program_start
    ADD COLUMN IF NOT EXISTS metrics_port SMALLINT UNSIGNED COMMENT 'of 127.0.0.1; null if it serves none';
