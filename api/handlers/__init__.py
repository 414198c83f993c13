"""Answers requests: each handler looks its subject up, lets pure code build the answer, and adds headers."""
