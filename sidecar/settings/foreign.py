"""Keys that are valid for the Java admin client or the Strimzi plugin and aren't settings here.

Keys that only tune the Java client are accepted with a notice, so that a file for that client can
be used. Keys that name a Java class to load change how credentials are handled, so they are
refused, unless the sidecar does the work of that class itself. The names are those of Kafka 3.3.2
to 4.4.0 (``AdminClientConfig.configNames()``).

Example: ``kafka.admin.request.timeout.ms`` is noted; ``kafka.admin.ssl.engine.factory.class`` is
refused.
"""

_TUNING = """
auto.include.jmx.reporter bootstrap.controllers bootstrap.resolve.timeout.ms client.dns.lookup
config.providers connections.max.idle.ms default.api.timeout.ms enable.metrics.push
metadata.cluster.check.enable metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level
metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms
sasl.login.retry.backoff.ms sasl.oauthbearer.allow.unverified.audience
sasl.oauthbearer.allow.unverified.issuer sasl.oauthbearer.assertion.algorithm
sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name send.buffer.bytes
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms ssl.cipher.suites
ssl.enabled.protocols ssl.keymanager.algorithm ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm
"""
_OAUTH = "org.apache.kafka.common.security.oauthbearer."
_LOGIN = "OAuthBearerLoginCallbackHandler"
_CLASSES = {
    "sasl.client.callback.handler.class": {
        f"{_OAUTH}OAuthBearerSaslClientCallbackHandler",
        "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    },
    "sasl.login.callback.handler.class": {f"{_OAUTH}{_LOGIN}", f"{_OAUTH}secured.{_LOGIN}"},
    "sasl.login.class": set[str](),
    "sasl.oauthbearer.jwt.retriever.class": {
        f"{_OAUTH}DefaultJwtRetriever",
        f"{_OAUTH}ClientCredentialsJwtRetriever",
        f"{_OAUTH}FileJwtRetriever",
    },
    "sasl.oauthbearer.jwt.validator.class": {
        f"{_OAUTH}DefaultJwtValidator",
        f"{_OAUTH}ClientJwtValidator",
    },
    "security.providers": set[str](),
    "ssl.engine.factory.class": {"org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"},
}

ADMIN_KEYS = frozenset(_TUNING.split()) | _CLASSES.keys()
"""The other keys of the Java admin client, without a prefix."""

ADMIN_FIELDS = {f"kafka_admin_{key}".replace(".", "_"): key for key in ADMIN_KEYS}
"""These keys, as the names of settings."""

EXCLUDED = "excluded.principal.name.list"
COMMA = (
    'is one name here: the callback separates names by ";", as the plugin does since 0.3.1; the'
    ' plugin before that separated them by ","'
)
REFUSED = "is refused by the callback: write names such as User:ann;User:CN=broker,O=x"
_CALLBACK = "is the quota callback's and has no effect here"
PLUGIN_NOTICES = {
    "produce": _CALLBACK,
    "fetch": _CALLBACK,
    "request": _CALLBACK,
    EXCLUDED: _CALLBACK,
    "kafka.clientIdPrefix": "has no effect here: the client id is kafka.admin.client.id",
}
"""The plugin's keys that aren't settings of the sidecar, without prefix -> the notice for each."""

_REMOVED = (
    "was removed by proposal 047 with the limits on all volumes together: set"
    " client.quota.callback.static.storage.per.volume.limit.min.available.bytes or"
    " client.quota.callback.static.storage.per.volume.limit.min.available.ratio instead, what"
    " each volume must have available"
)
REMOVED_KEYS = {"storage.hard": _REMOVED, "storage.soft": _REMOVED}
"""The plugin's former keys, without prefix -> a message with their replacements."""


def admin_verdict(key: str, value: object) -> tuple[bool, str]:
    """Return whether one of ``ADMIN_KEYS`` is refused, and the message that follows its name.

    The value is never quoted.
    """
    harmless = _CLASSES.get(key)
    if harmless is not None and not (isinstance(value, str) and value in harmless):
        return True, "names a Java class to load, which the sidecar can't"
    return False, "is the Java admin client's and has no effect here"
