"""The real cluster of ``demo-pipeline``, and the comparison with the pipeline's tables."""
