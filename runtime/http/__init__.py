"""HTTP servers within bounds that no client can exceed, and the certificates on both sides of TLS.

=========================  =================================================================================
``patient_http``           uvicorn's HTTP protocol, with bounds on what clients send and how long they take
``own_names``              whether a server on loopback is asked under a name of this machine
``tls_listener``           connections over HTTPS until the handshake is done, and uvicorn on them
``bodies``                 bodies of requests, within the memory that all callers share
``descriptors``            how many files and connections a process may have open
``server_tls``             HTTPS with certificates that may be replaced while connections are open
``tls``                    TLS towards servers: whom we trust, and how we are known
``certificate_authority``  a private authority that signs certificates, for who has none; needs cryptography
=========================  =================================================================================
"""
