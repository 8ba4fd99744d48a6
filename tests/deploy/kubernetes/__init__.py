"""What is applied to a Kubernetes cluster, without one: rendered, and checked by our code."""
