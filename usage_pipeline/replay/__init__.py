"""What quotas would have done: gold_replay."""
