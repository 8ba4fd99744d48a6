"""The real cluster of ``demo-pipeline``, and what the pipeline's tables are compared with."""
