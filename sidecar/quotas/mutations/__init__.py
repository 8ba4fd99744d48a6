"""Controller mutations (KIP-599): the algorithms and the admission of a request."""
