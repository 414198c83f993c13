"""HAMi's texts on Kubernetes objects, read and written here for the scheduler and for `ingest`.

    annotations            names of annotations, labels and resources
    vendor_annotations     annotations that only one vendor reads
    vendors                the table of vendors, and NVIDIA's row
    vendor_catalog         the other vendors
    reason_codes           the codes by which devices and nodes are refused

    node_registration      all devices of a Node object, of every vendor
    registration           the devices in a register annotation: JSON, the form up to v2.7, Metax'
    capacity_registration  devices that only the capacity of a node shows
    drs_registration       the devices in Enflame's annotation
    handshake              the handshake between the scheduler and a node's device plugin
    node_checks            problems in the registrations of a node's devices
    registered_event       a node's devices as the event `node.registered`
    checked_event          a node's problems as the event `node.checked`
    node_lock              the lock of a node during a bind

    allocation             the devices of a pod's containers
    pod_allocations        the devices of a pod as the contract has them, of every vendor
    mig                    MIG profiles and placements
    requests               values in the request of a container
    cluster_objects        the Kubernetes objects of recorded node states

    go_values              numbers, booleans and JSON as Go reads them
    quantities             Kubernetes quantities
    json_values            values of objects, whatever their JSON holds

Functions from values to values: no client, no clock, no environment.
"""
