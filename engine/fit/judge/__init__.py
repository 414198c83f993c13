"""One pod against all devices: request → checks → vendors → choose → decide, as HAMi does it. Pure.

The caller calls `decide.decide(columns, pod, node_names, policy)`. It hands on, in this order:

    request   `pod_request.list_requests` reads a `VendorRequest` of each container, and
              `pod_constraints.build_constraints` what each vendor's devices must satisfy. Without a request of a device
              the answer is `NotOurs`, with one that can't be judged `Failed`.
    checks    `choose.batch_evaluation.BatchEvaluation.judge(container, request)` takes a `DeviceMatrix` of nodes of
              similar size and checks all devices at once: `fit.check_devices` gives the `FirstRefusals`, and
              `fit.take_in_order`, `sequential_fit` or `topology` the devices that are taken.
    vendors   families with rules of their own, and nodes with MIG devices, are judged node by node instead.
    choose    the verdicts become a `ContainerJudgement` (module `judgement`); `scoring` and `vendors.node_scores` score
              the nodes that passed all containers, and `decide` takes the best one.
    decide    the chosen node is evaluated once more, device by device, for the order of its `Allocation`. The result is
              a `Decision`.

Other modules:

    judgement      verdicts on one container, and the refusals of nodes
    decision       the results of `decide`, complete in themselves
    reservation    what an allocation writes into the pod and holds in the cluster state
    plugin_keys    annotations that the vendors' device plugins read
    fitting_nodes  whether the pod fits on any of many nodes, and nothing else
    copies         number of copies of a pod that each node takes
"""
