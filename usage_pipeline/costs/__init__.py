"""What usage costs each owner: gold_cost."""
