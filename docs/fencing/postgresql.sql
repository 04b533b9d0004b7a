-- Each row has the highest token that has changed it.
CREATE TABLE invoice (
    id    TEXT   PRIMARY KEY,
    state TEXT   NOT NULL,
    fence BIGINT NOT NULL DEFAULT 0
);

-- Change a row: $1 the token, $2 the id, $3 the new state. 0 rows: stale (or no such row).
UPDATE invoice SET state = $3, fence = $1 WHERE id = $2 AND fence <= $1;

-- Insert it, or change it where it is there. 0 rows: stale.
INSERT INTO invoice (id, state, fence) VALUES ($2, $3, $1)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, fence = excluded.fence
WHERE invoice.fence <= excluded.fence;

-- Change more than one row or table: the first statement of the transaction. 0 rows: stale, so
-- ROLLBACK. Nobody else passes for this row until the transaction ends.
UPDATE invoice SET fence = $1 WHERE id = $2 AND fence <= $1;
