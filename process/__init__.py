"""What every process needs, whatever its task. Imports nothing else of this project.

=================  =====================================================================================================
``configuration``  settings: where they come from, what their values may be, and those that several processes share
``command_line``   what every command of a command line has
``http``           what answers HTTP, within bounds that no client can exceed, and the certificates on both sides of TLS
``telemetry``      what is seen of a process from outside: logs, metrics, health, traces, profiles
``files``          files and folders of a process
``printable``      text without control characters
``errors``         what ends a command with one line
``signals``        work until SIGTERM or SIGINT
``backoff``        pauses between tries, and waiting for a store that is down
``bounded_cache``  a mapping that drops its oldest entries
``durations``      durations as Go writes them: 10s, 1h30m
``log_once``       log a problem when it changes, not while it lasts
=================  =====================================================================================================
"""
