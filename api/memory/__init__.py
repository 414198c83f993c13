"""The latest attempts in memory, filled from the topic of attempts."""
