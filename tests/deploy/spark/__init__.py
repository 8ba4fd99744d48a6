"""What a Spark cluster needs."""
