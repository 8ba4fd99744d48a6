"""Messages about changes of the decision to a webhook: Alertmanager's API or Slack's."""
