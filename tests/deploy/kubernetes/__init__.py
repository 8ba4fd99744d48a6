"""The schemas of Kubernetes' resources and custom ones, and the patches that we print."""
