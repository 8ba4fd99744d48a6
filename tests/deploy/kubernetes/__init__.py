"""What is applied to a Kubernetes cluster, without one: rendered, checked, and held to our code."""
