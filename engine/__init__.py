"""The pure core of schedulerlog: facts about clusters, judgements on them, and explanations of both.

No client, clock, disk or log: callers pass objects, times and settings as values.
"""
