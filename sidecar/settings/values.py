"""The allowed values of settings that accept only certain words."""

from typing import Final, Literal

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal[
    "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"
]
Mode = Literal["enforce", "observe"]
ThrottleScope = Literal["cluster", "volume"]
IdsCount = Literal["active", "allocated"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
ReliefMode = Literal["off", "dry-run", "delete"]
Platform = Literal["auto", "kafka", "strimzi"]
WebhookFormat = Literal["alertmanager", "slack"]

RUNBOOKS_URL: Final = "http://127.0.0.1:7070/runbooks/"
"""Leads to a sidecar through a tunnel or a forwarded port; alert rules have the same default."""
Place = Literal["environment", "properties", "toml", "command config"]
"""Where an operator sets settings. A message names a setting as it is written there."""
