"""What other sidecars know."""
