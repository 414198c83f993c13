"""Decisions on disk until Kafka has them: appended before the answer leaves, bounded, whole again after any crash."""
