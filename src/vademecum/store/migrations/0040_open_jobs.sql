-- What is left to do is asked for all the time, and jobs that are done stay for a week.
CREATE INDEX processing_queue_open ON processing_queue (collection_id) WHERE status <> 'done';
