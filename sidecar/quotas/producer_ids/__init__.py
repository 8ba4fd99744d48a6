"""Quotas on producer ids (KIP-936): which ids count, and how long a user must wait."""
