"""Dead letters: records that could not be processed, and documents that the index refused.

``codec``     a record as a dead letter, and back
``log``       the line in the log about one
``commands``  the commands that list, show and replay them
"""
