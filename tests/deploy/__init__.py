"""What is deployed beside the package."""
