"""Lines of logs and the forms that schedulers share.

- ``blocks``: lines with their place, as every source yields them
- ``framing``: from bytes to lines: encodings, line ends, prefixes of container runtimes, colours
- ``copies``: what kubectl, log stores, chats and mail put around a line
- ``klog``: the text form of Kubernetes' logging library
"""
