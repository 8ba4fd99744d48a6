"""Quotas on producer ids (KIP-936), a capability of the daemon."""
