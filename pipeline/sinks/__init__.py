"""Where results go: the index and the broker. Both wait for a store that is down; neither loses or repeats."""
