"""Where the time and the memory go: `/debug/pprof/`, as `go tool pprof` reads it, and as text.

pprof      pure: samples as a pprof file
flame      pure: samples as a tree in plain text
sampler    which thread spends CPU time where
heap       what Python objects take, by where they were allocated
server     all of it over HTTP, on a thread of its own: it answers while the event loop does not
"""
