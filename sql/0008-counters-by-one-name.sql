-- It can be repeated after a crash between its two statements.
-- A counter has one name: in the code, in this table, on Prometheus' page and in docs/counters.md.
-- An event that was shed and is read back is replayed, as everywhere else.
ALTER TABLE batch_counters
    RENAME COLUMN IF EXISTS seconds TO batch_seconds,
    RENAME COLUMN IF EXISTS taken_back TO replayed,
    RENAME COLUMN IF EXISTS lag TO lag_events,
    RENAME COLUMN IF EXISTS shed_waiting TO shed_waiting_events,
    RENAME COLUMN IF EXISTS shed_damaged TO shed_damaged_events,
    MODIFY COLUMN events BIGINT UNSIGNED NOT NULL COMMENT 'events + replayed = enriched + unmatched + rejected + shed';

ALTER TABLE shed_segment
    RENAME COLUMN IF EXISTS taken_by TO replayed_by;
