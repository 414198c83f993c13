"""From a decision to Kafka: events are built, spooled on disk, and published by one task."""
