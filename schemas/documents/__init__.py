"""The documents that OpenSearch holds."""
