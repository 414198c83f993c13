"""HAMi's texts on Kubernetes objects, read and written here for the scheduler and for `ingest`.

    annotations            names of annotations, labels and resources
    vendor_annotations     annotations that only one vendor reads
    vendors                the table of vendors, and NVIDIA's row
    vendor_catalog         the other vendors, and the resources that only HAMi's scheduler counts
    releases               HAMi's releases, and the rules that changed after v2.10
    reason_codes           the codes by which devices and nodes are refused

    node_registration      all devices of a Node object, of every vendor
    registration           the devices in a register annotation: JSON, the form up to v2.7, Metax'
    vendor_registrations   devices in a node's capacity, and in Enflame's annotation
    handshake              the handshake between the scheduler and a node's device plugin
    node_checks            problems in the registrations of a node's devices
    node_events            events `node.registered` and `node.checked` of a node
    node_lock              the lock of a node during a bind

    allocation             the devices of a pod's containers, as HAMi writes them and as the contract has them
    mig                    MIG profiles and placements
    cluster_objects        the Kubernetes objects of recorded node states

    go_values              numbers, booleans and JSON as Go reads them; values of objects
    quantities             Kubernetes quantities

Functions from values to values: no client, no clock, no environment.
"""
