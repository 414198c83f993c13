"""Errors that end a reading command with one line: exit code 2, or 1 if Kafka fails. Importing them needs no client.

ReadingError
├── MistakeError            the caller asked for something impossible: the line says what to change
│   └── UnknownLogError     a file is not the log of a scheduler that is known
├── KafkaUnavailableError   Kafka did not take the events
│   └── LeaseLostError      another process may read now (ingest.reading.lease)
├── UnreadableFileError     a log can't be read (ingest.sources.pieces)
└── CheckpointError         a checkpoint can't be read or written (ingest.reading.checkpoint)
"""


class ReadingError(Exception):
    """The base of these errors; the text is the line that the user reads."""


class MistakeError(ReadingError):
    """A mistake of the caller; the text says what to change."""


class UnknownLogError(MistakeError):
    """A file without a line of a scheduler that is known: in a folder, one of many that are about something else."""


class KafkaUnavailableError(ReadingError):
    """Kafka did not take the events; the text says why, and what to do."""
