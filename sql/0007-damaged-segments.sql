-- A file of the shed store that cannot be read is set aside: the events stay where they are, and nobody tries to take them
-- back until an operator has cleared `damage` (docs/pipelines.md).
ALTER TABLE shed_segment ADD COLUMN IF NOT EXISTS damage VARCHAR(500) COMMENT 'why its file cannot be read; null where it can';
ALTER TABLE batch_counters ADD COLUMN IF NOT EXISTS shed_damaged BIGINT UNSIGNED COMMENT 'those of shed_waiting whose file cannot be read';
