"""What HAMi writes on Kubernetes objects, read and written in one place for the scheduler and for `ingest`.

    json_values        values of objects, whatever their JSON holds
    annotations        names of annotations, labels and resources
    registration       the devices in a register annotation: JSON, the form up to v2.7, Metax'
    node_registration  all devices of a Node object, of every vendor
    capacity_registration  devices that only the capacity of a node shows
    drs_registration  the devices in Enflame's annotation
    vendor_annotations  annotations that only one vendor reads
    registered_event   a node's devices as the event `node.registered`
    node_checks        problems in how a node registers its devices
    checked_event      a node's problems as the event `node.checked`
    handshake          the handshake between the scheduler and a node's device plugin
    node_lock          the lock of a node during a bind
    allocation         the devices of a pod's containers
    cluster_objects    the Kubernetes objects of recorded node states
    pod_allocations    the same as the contract has them, of every vendor
    mig                MIG profiles and placements
    requests           values in the request of a container
    reason_codes       the codes by which devices and nodes are refused
    vendors            the table of vendors, and NVIDIA's row
    vendor_catalog     the other vendors
    go_values          numbers, booleans and JSON as Go reads them
    quantities         Kubernetes quantities

Functions from values to values: no client, no clock, no environment.
"""
