"""HAMi's log, for who reads logs: the lines of HAMi v2.10 at `--v=0|2|4|5`, made from the same decisions as the events.

lines     pure: a decision as lines, each with pod, node and device in it
writer    another thread, which renders and writes them while the filter goes on
"""
