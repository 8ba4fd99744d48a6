"""Producers held by a full volume, and let go: ours and Strimzi's plugin side by side."""
