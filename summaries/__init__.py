"""From decisions to what people read: pure functions, without a broker, an index or a clock.

``fold`` counts the records of an attempt into one summary, ``text`` is the one place that writes ``X/Y Reason``,
``messages`` writes the event lines, ``answer`` the schedulerlog JSON. ``episodes`` says what a retry has in common with
the attempt before it, ``trends`` what it adds to its minute, ``audit`` what about it can't be right. The pipeline, the
API, the scheduler's simulation and the readers of other schedulers' logs all tell the same story because they all tell
it with these.
"""
