-- What is read of a segment may be kept by who read it: its postings never change, only go. The key
-- is never used again, neither after a merge nor in a database that was restored to an earlier day.
ALTER TABLE segments ADD COLUMN key uuid NOT NULL DEFAULT gen_random_uuid();
