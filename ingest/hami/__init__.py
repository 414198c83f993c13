"""HAMi's scheduler log (klog text, v2.5 to v2.10, -v=0 to 5) as events.

``reader`` finds the step for each line by ``grammar``; the steps are in ``filter_lines`` and ``bind_lines``. ``book``
holds what is going on, ``attempt`` what is known of one try, ``registry`` which card sits on which node, and
``telling`` makes events of it.
"""
