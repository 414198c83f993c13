"""What HAMi writes on Kubernetes objects: annotations, registrations, allocations, locks, durations, quantities."""
