"""Request time (KIP-124): percentages, capacity, shares and plans."""
