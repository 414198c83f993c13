"""Volcano's scheduler log (-v=3, its default, and above) as events: refused nodes with reasons, choices of gangs.

- ``reader``: the entry
- ``grammar``: words by which its lines are recognised
"""
