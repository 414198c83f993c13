"""The cluster's devices: what nodes register, what pods hold of them, and both as numpy columns kept by increments."""
