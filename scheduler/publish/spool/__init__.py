"""Decisions on disk until Kafka has them: appended before the answer leaves, bounded, intact after any crash.

spool            the way in: append, flush, next_batch, acknowledge
segment_log      all files together: rotated, thinned, bounded
segments         one file
files            every system call that the spool makes
frames           records in a file: framed and checksummed (pure)
shedding         drops device detail and leaves an event in its place (pure)
checkpoint       the position up to which Kafka has the records, and the lock of the folder
group_commit     appends that share one fsync
memory_buffer    entries that wait while the disk can't be written
"""
