"""Messages from their topic to the events of pods, as ``kubectl describe`` shows them.

    messages topic ──▶ process ──▶ book (which event counts which message) ──▶ api_server ──▶ events.k8s.io/v1

``book`` and ``body`` are pure. The state is on the API server: each event says in an annotation which
attempts it has counted, so a restart reads it back, and a message that is read twice is counted once.
"""
