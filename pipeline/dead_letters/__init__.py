"""Dead letters: records that could not be processed, and documents that the index refused.

``codec``     a record as a dead letter, and back
``commands``  the commands that list, show and replay them
"""
