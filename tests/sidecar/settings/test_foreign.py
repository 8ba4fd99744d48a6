"""Keys that are valid elsewhere."""

import pytest

from sidecar.settings import keys
from sidecar.settings.foreign import (
    ADMIN_KEYS,
    PLUGIN_NOTICES,
    REMOVED_KEYS,
    admin_verdict,
)


def test_nothing_is_both_ours_and_foreign() -> None:
    """A setting of ours is never noted as having no effect."""
    ours = {keys.dotted(field) for field in keys.FIELDS}
    assert not ours & {keys.ADMIN_PREFIX + key for key in ADMIN_KEYS}
    assert not ours & (PLUGIN_NOTICES.keys() | REMOVED_KEYS.keys())


@pytest.mark.parametrize(
    "key", ["retries", "metadata.max.age.ms", "ssl.cipher.suites", "sasl.kerberos.service.name"]
)
def test_tuning_is_accepted(key: str) -> None:
    """What only tunes the Java client is noted."""
    expected = (False, "is the Java admin client's and has no effect here")
    assert expected == admin_verdict(key, "anything")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (
            "sasl.login.callback.handler.class",
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        ),
        (
            "sasl.login.callback.handler.class",
            "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
        ),
        (
            "ssl.engine.factory.class",
            "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
        ),
    ],
)
def test_a_class_whose_work_is_done_here_is_accepted(key: str, value: str) -> None:
    """Kafka's own handlers do what the sidecar does, so naming them changes nothing."""
    assert not admin_verdict(key, value)[0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sasl.login.callback.handler.class", "io.strimzi.kafka.oauth.client.Handler"),
        ("sasl.client.callback.handler.class", "com.example.Handler"),
        ("sasl.login.class", "com.example.Login"),
        ("security.providers", "com.example.Provider"),
        ("ssl.engine.factory.class", "com.example.Factory"),
        ("ssl.engine.factory.class", ["not", "text"]),
    ],
)
def test_another_class_is_refused(key: str, value: object) -> None:
    """To go on without it would send other credentials than were meant."""
    is_refused, sentence = admin_verdict(key, value)
    assert is_refused
    assert sentence.startswith("names a Java class to load")
