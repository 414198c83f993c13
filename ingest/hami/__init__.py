"""HAMi's scheduler log (klog text, v2.5 to v2.10, -v=0 to 5) as events.

``grammar`` knows how each version spells a line, ``registry`` which card sits on which node, ``attempt`` what is known
of one try so far, ``telling`` turns that into events, ``reader`` feeds lines through all of it.
"""
