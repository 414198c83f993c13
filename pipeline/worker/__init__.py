"""The worker: folds the decisions of its partitions into summaries and writes them to the index and the topics."""
