"""When volumes are full: gold_disk_forecast."""
