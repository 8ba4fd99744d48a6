"""Producers throttled for a full volume, and released: ours and Strimzi's plugin side by side."""
