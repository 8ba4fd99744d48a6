"""Board, poller and journal: observe, fold, decide, publish."""
