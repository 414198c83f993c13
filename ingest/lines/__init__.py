"""Lines of logs and the forms that schedulers share.

- ``blocks``: lines with their place, as every source yields them
- ``framing``: from bytes to lines: line ends, prefixes of container runtimes, colours
- ``klog``: the text form of Kubernetes' logging library
- ``line_shapes``: the shape of a line that no grammar has
"""
