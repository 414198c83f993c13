"""Alerts by rules, from what travels on the topics.

    topics ──▶ reading ──▶ timeline (one order, and a clock) ──▶ conditions ──▶ book ──▶ alerts topic ──▶ alertmanager

Everything up to the alerts topic is a pure fold: records are put in the order of their time in Kafka, the clock ticks
between them, and the same records give the same alerts with the same ids, whenever they are read.
"""
