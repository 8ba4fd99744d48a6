"""The tables of logged and observed facts: requests, volumes, quotas and topics."""
