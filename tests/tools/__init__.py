"""What makes committed files from code."""
