"""The alert rules and their runbooks."""
