"""The tables of what was logged and observed: requests, volumes, quotas, topics."""
