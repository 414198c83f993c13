"""The smallest changes after which a pod fits. Pure."""
