"""Messages about changes of the decision: to Alertmanager, Slack or Kubernetes."""
