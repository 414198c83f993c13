"""Alerts by rules, from the records of the other topics.

    topics ──▶ inputs ──▶ timeline ──▶ conditions ──▶ state ──▶ alerts topic ──▶ alertmanager_bridge
                      (one order, ticks)         (what changed)

Everything up to the alerts topic is a pure fold: records are ordered by their time in Kafka, a clock ticks between
them, and the same records give the same alerts with the same ids at every reading.

=======================  ==========================================================================================
``inputs``               pure: inputs of conditions, decoded from Kafka records
``timeline``             pure: one order over all partitions, and the ticks of the clock
``conditions``           pure: a module per kind of rule, with its settings and its condition
``rules``                the kinds of rules, and the reader of ``rules.yaml``
``links``                pure: paths at the API and at OpenSearch that show the evidence
``state``                pure: the alerts that fire, and their changes at a tick
``process``              the process: reads the topics, ticks, publishes
``alertmanager_bridge``  the process that posts alerts to Alertmanager
``command``              the command lines
=======================  ==========================================================================================
"""
