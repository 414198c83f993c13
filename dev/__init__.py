"""Tools for developers: servers on this machine, the demo, benchmarks.

========  ==============================================================================
embedded  Kafka, OpenSearch and a Kubernetes control plane on this machine without Docker
demo      the main job end to end, with five scenarios
bench     speed as ratios, side by side in one run
========  ==============================================================================
"""
