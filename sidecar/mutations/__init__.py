"""Admission of controller mutations (KIP-599), a capability of the daemon."""
