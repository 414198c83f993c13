"""What every process needs, whatever it does: its command line, its settings, its log, its probes, its pauses.

Imports nothing of this project. `cli` builds command lines; `scratch` gives a process a folder while it runs.
"""
