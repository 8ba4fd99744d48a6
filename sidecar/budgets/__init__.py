"""Storage budgets: how much owners of topics may use, and the throttles of those past that."""
