"""Producers that fill a volume for half an hour, and the stop line that is to keep it from full."""
