"""Speed as ratios, measured side by side in one run. ``python -m bench [NAME ...]``.

Every benchmark names what it compares with, prints a table and a JSON line, and runs its rivals on the same work, the
same servers and the same machine within the same minute.
"""
