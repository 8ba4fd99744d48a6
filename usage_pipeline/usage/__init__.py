"""What clients used, second by second: gold_usage_1s."""
