"""Producer ids (KIP-936): which count, and how long who has too many must wait."""
