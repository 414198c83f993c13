"""Profiles of CPU time and memory under `/debug/pprof/`, for `go tool pprof` and as text.

Imported only with --profiling: where it is off, nothing of it is in the process. `profiled` is the option.

pprof      pure: samples as a pprof file
flame      pure: samples as a tree in plain text
sampler    which thread spends CPU time where
heap       what Python objects take, by where they were allocated
server     all of it over HTTP, on a thread of its own: it answers while the event loop does not
"""
