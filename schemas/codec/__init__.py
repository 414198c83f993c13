"""How events become Kafka records and back: columns, chunks below the size limit, and a fast reader of numbers."""
