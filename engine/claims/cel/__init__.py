"""CEL of device selectors: compiled by Google's library, evaluated here with Kubernetes' functions, errors and costs.

selector     ``compile_selector``: an expression with its outcome on a device, and the parts of it that a device fails
compiler     expressions checked by the library with Kubernetes' declarations (`signatures`, `device_message`)
syntax       the tree of a checked expression, read from the library's wire format (`wire`)
planner      the tree as functions (`steps`, `chains`) that evaluate it in a frame (`frames`) and count `costs`
values       values with CEL's equality and order; `attributes`: steps into them, and a device as one
functions    functions with overloads, in `arithmetic`, `checks`, `formatting`, `patterns`, `strings`, `lists`,
             `conversions`, `times`, `kubernetes`, `networks` and `urls`
parts        the parts that are not true, with the values of both sides (`rendering`: their text)
reads        the properties of a device that decide an expression
"""
