"""Pure quota algorithms: rates, token buckets, entities (a later release)."""
