"""About dead letters: records that could not be processed, and documents that the index refused.

``log``       the lines in the log about them, few a minute
``commands``  the commands that list, show and replay them
"""
