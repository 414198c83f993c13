"""HTTP servers within bounds that no client can exceed, and the certificates on both sides of TLS.

=========================  =================================================================================
``patient_http``           uvicorn's HTTP protocol, with bounds on what clients send and how long they take
``tls_listener``           connections over HTTPS until the handshake is done, uvicorn on them, and their limit
``bodies``                 bodies of requests, within the memory that all callers share
``server_tls``             HTTPS with certificates that may be replaced while connections are open
``tls``                    TLS towards servers: authorities that we trust, our certificate
``certificate_authority``  private authority that signs certificates; needs cryptography
=========================  =================================================================================
"""
