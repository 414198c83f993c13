"""One pod against all devices: fit, order, score and choice as HAMi does it, from values to values.

``decide`` is the way in, ``decision`` what comes out. ``fit`` judges all nodes at once with arrays; ``walk``,
``singly`` and ``topology`` go card by card where the order has a memory (MIG, topology-aware choice).
"""
