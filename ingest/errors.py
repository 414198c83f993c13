"""What ends a reading command with one line and exit code 2, but 1 where Kafka fails. Importing it needs no client.

ReadingError
├── MistakeError            the caller asked for something impossible: the line says what to change
├── KafkaUnavailableError   Kafka did not take the events
├── UnreadableFileError     a log can't be read (ingest.sources.blocks)
└── CheckpointError         a checkpoint can't be read or written (ingest.reading.checkpoint)
"""


class ReadingError(Exception):
    """The base of all of them; the text is the line that is shown."""


class MistakeError(ReadingError):
    """A mistake of the caller; the text says what to change."""


class KafkaUnavailableError(ReadingError):
    """Kafka did not take the events; the text says why, and what to do."""
