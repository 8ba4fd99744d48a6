"""The settings ``kafka.admin.*`` together: what the Java admin client would be configured with.

Example: bootstrap servers, SASL_SSL, SCRAM-SHA-512, a user and a password file are one
``KafkaAdmin`` whose password is the file's text.
"""

from sidecar.settings.fields import RawSettings
from sidecar.settings.problem_list import Problems
from sidecar.settings.sasl import resolve_sasl
from sidecar.settings.tls import resolve_tls
from sidecar.settings.values import KafkaAdmin

_SERVERS = "kafka_admin_bootstrap_servers"


def resolve_kafka_admin(
    raw: RawSettings, *, required: bool, problems: Problems
) -> KafkaAdmin | None:
    """How to reach the brokers.

    Args:
        raw: the values, each good by itself.
        required: False when the sidecar is disabled.
        problems: gets what doesn't fit together.

    Returns:
        None when no servers are set, which is a problem only if they are required.
    """
    if not problems.is_set(_SERVERS):
        if not required:
            return None
        problems.add(_SERVERS, "is required: the brokers to dial first, as host:port,host:port")
    sasl = resolve_sasl(raw, problems)
    tls = resolve_tls(raw, problems)
    if raw.kafka_admin_bootstrap_servers is None:
        return None
    return KafkaAdmin(
        bootstrap_servers=raw.kafka_admin_bootstrap_servers,
        security_protocol=raw.kafka_admin_security_protocol,
        sasl_mechanism=raw.kafka_admin_sasl_mechanism,
        sasl_username=sasl.username,
        sasl_password=sasl.password,
        sasl_setting_names=sasl.setting_names,
        oauth_token_url=sasl.token_url,
        oauth_client_id=sasl.client_id,
        oauth_client_secret=sasl.client_secret,
        oauth_scope=sasl.scope,
        ssl_ca_file=tls.ca_file,
        ssl_ca_pem=tls.ca_pem,
        ssl_certificate_file=tls.certificate_file,
        ssl_certificate_pem=tls.certificate_pem,
        ssl_key_file=tls.key_file,
        ssl_key_pem=tls.key_pem,
        ssl_key_password=tls.key_password,
        ssl_verify_hostname=tls.verify_hostname,
        client_id=raw.kafka_admin_client_id,
        settings_source=problems.settings_source,
    )
