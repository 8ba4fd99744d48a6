"""The batch job and its stages."""
