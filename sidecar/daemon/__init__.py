"""The daemon: the composition root, its tasks and signals."""
