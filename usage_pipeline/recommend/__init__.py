"""Recommended quotas: gold_recommendation."""
