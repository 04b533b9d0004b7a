-- Each row has the highest token that has changed it.
CREATE TABLE invoice (
    id    TEXT   PRIMARY KEY,
    state TEXT   NOT NULL,
    fence BIGINT NOT NULL DEFAULT 0
);

-- Change a row. 0 rows, by sqlite3_changes() or SELECT changes(): stale (or no such row).
UPDATE invoice SET state = :state, fence = :token WHERE id = :id AND fence <= :token;

-- Insert it, or change it where it is there. 0 rows: stale.
INSERT INTO invoice (id, state, fence) VALUES (:id, :state, :token)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, fence = excluded.fence
WHERE invoice.fence <= excluded.fence;

-- Change more than one row or table: the first statement after BEGIN IMMEDIATE. 0 rows: stale, so
-- ROLLBACK. Nobody else writes until the transaction ends.
UPDATE invoice SET fence = :token WHERE id = :id AND fence <= :token;
