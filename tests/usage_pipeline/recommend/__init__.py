"""Recommend."""
