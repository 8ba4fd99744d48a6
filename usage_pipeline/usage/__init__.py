"""gold_usage_1s: what each client used in each second."""
