"""Writes messages into Kubernetes as events of their pods, as ``kubectl describe`` shows them.

    messages topic ──▶ process ──▶ event_writer ──▶ event_series ──▶ api_server ──▶ events.k8s.io/v1
                                                 (which event counts
                                                  which message)

The state is on the API server: an annotation of each event names the attempts that it has counted. A restart reads it
back, and a message that is read twice is counted once.

================  ==================================================================================
``event_series``  pure: which event counts which message, each message once
``event_object``  pure: an event as a JSON object of the API, and back
``api_server``    the requests to the API server
``event_writer``  a batch of messages: retries, dead letters, what is passed over
``process``       the process: consumes the topic, commits what is written
``metrics``       what the process counts
``command``       the command line
================  ==================================================================================
"""
