"""Messages as Kubernetes events of their pods, as ``kubectl describe`` shows them.

    messages topic ──▶ process ──▶ event_writer ──▶ event_series ──▶ api_server ──▶ events.k8s.io/v1
                                                 (each message in
                                                  one event)

The state is on the API server: an annotation of each event names the attempts that it has counted. A restart reads it
back, and a message that is read twice is counted once.

================  ==================================================================================
``event_series``  pure: assignment of messages to events, each message once
``event_object``  pure: an event as a JSON object of the API, and back
``api_server``    the requests to the API server
``event_writer``  a batch of messages: retries, dead letters, what is passed over
``process``       the process: consumes the topic, commits what is written
``command``       the command line
================  ==================================================================================
"""
