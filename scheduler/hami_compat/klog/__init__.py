"""HAMi's log: the lines of HAMi v2.10 at `--v=0|2|4|5`, made from the same decisions as the events.

lines           a decision as lines, each with pod, node and device (pure)
device_lines    one line and the spelling of values in it, and the lines about single devices (pure)
writer          a thread that renders and writes the lines while the filter continues
"""
