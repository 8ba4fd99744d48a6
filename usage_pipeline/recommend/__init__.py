"""Which quotas to set: gold_recommendation."""
