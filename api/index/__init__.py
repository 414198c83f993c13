"""Reads from OpenSearch: queries as pure functions, the client that sends them, and readers of what comes back."""
