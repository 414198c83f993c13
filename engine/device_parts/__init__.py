"""Devices that Koordinator or Volcano gives parts of: those of each node, what pods hold, and what a device lacks.

These schedulers only count nodes. Their objects say the rest: Koordinator's ``Device`` of a node and Volcano's register
annotation list the devices, annotations of pods what they hold. Pure.

- ``divisible``: a device with the parts that pods hold, a request, and the reason for which a device does not meet it
- ``koordinator``: Koordinator's objects Device, and its annotation of pods
- ``volcano``: the annotations of Volcano's vGPU devices
- ``node_devices``: the devices of one node with what its pods hold
"""
