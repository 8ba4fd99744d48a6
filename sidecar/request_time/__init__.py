"""Request-time quotas (KIP-124): usage, tenants, capacity and the changes of quotas."""
