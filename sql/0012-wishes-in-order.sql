-- Wishes are in the order in which they were asked for, not in which they were carried out: an older start or stop that
-- was queued or tried again never overrides a newer one.
ALTER TABLE wish
    ADD COLUMN IF NOT EXISTS asked_at DATETIME(6) NOT NULL DEFAULT UTC_TIMESTAMP(6) COMMENT 'UTC; when it was asked for';
