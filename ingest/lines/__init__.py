"""Lines of logs: framing by container runtimes, klog's text form, and the shape of a line."""
