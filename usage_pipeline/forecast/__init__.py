"""Forecasts of full volumes: gold_disk_forecast."""
