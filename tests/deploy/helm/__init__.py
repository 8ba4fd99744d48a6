"""The Helm chart, without a Kubernetes cluster: rendered, and checked by our code."""
