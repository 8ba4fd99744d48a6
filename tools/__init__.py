"""What makes committed files from code: run by a person, held current by tests."""
