"""Alerts by rules: which conditions hold, from the records of the other topics.

    topics ──▶ input_decoder ──▶ timeline ──▶ conditions ──▶ state ──▶ alerts topic ──▶ alertmanager_bridge
                             (one order, ticks)         (what changed)

Everything up to the alerts topic is a pure fold: records are ordered by their time in Kafka, a clock ticks between
them, and the same records give the same alerts with the same ids at every reading.

=======================  ============================================================================================
``inputs``               what conditions are evaluated on
``input_decoder``        pure: Kafka records into inputs
``timeline``             pure: one order over all partitions, and the ticks of the clock
``tick_counter``         pure: occurrences counted by tick
``firing``               one case in which a condition holds
``conditions``           pure: a module per kind of rule, with its settings and its condition
``rules``                the kinds of rules, and the reader of ``rules.yaml``
``links``                pure: paths at the API and at OpenSearch that show the evidence
``state``                pure: which alerts fire, and what changes at a tick
``process``              the process: reads the topics, ticks, publishes
``metrics``              what the process counts
``alertmanager``         pure: alerts in the form of Alertmanager's API
``alertmanager_bridge``  the process that posts them
``command``              the command lines
=======================  ============================================================================================
"""
