"""The capability that sends messages to a webhook, and its metric."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import SecretStr

from sidecar.api.bearer_token import read_token
from sidecar.control.capability import Build, Capability, Services, Task
from sidecar.peers.trust import Trust
from sidecar.settings import Settings
from sidecar.webhook.sender import Hook, Post, Sender

_RESULTS = ("sent", "failed", "dropped")


def prepare(settings: Settings) -> Build:
    """Return the function that builds the capability; raises SettingsError for a wrong secret."""
    secret, url = _secret(settings), settings.webhook_url

    def build(services: Services) -> Capability:
        if url is None:
            return WebhookCapability(None)
        hook = Hook(
            settings.webhook_format,
            settings.webhook_interval,
            settings.runbooks_url,
            secret,
            _post_to(url),
        )
        return WebhookCapability(Sender(hook, services.board, services.wall))

    return build


def _post_to(url: SecretStr) -> Post:
    # The receiver is not one of the sidecars, so the machine's CA certificates count.
    trust = Trust()

    async def post(body: bytes, headers: Mapping[str, str]) -> int:
        response = await trust.request("POST", url.get_secret_value(), headers=headers, body=body)
        return response.status

    return post


def _secret(settings: Settings) -> str | None:
    file = settings.webhook_secret_file
    return None if file is None else read_token(file, "webhook's secret")


class WebhookCapability(Capability):
    """Sends messages if a URL is set."""

    name = "webhook"

    def __init__(self, sender: Sender | None) -> None:
        self._sender = sender

    def tasks(self) -> Mapping[str, Task]:
        """Sends the messages."""
        return {} if self._sender is None else {"messages": self._sender.run}

    def collectors(self) -> Iterable[Collector]:
        """The metric of the messages."""
        return (WebhookCollector(self._sender),)

    def reload(self, settings: Settings, *, redial: bool = True) -> Callable[[], None]:  # noqa: ARG002
        """Read the secret again."""
        secret, sender = _secret(settings), self._sender

        def use() -> None:
            if sender is not None:
                sender.hook.secret = secret

        return use


class WebhookCollector(Collector):
    """Reads the counts at each scrape."""

    def __init__(self, sender: Sender | None) -> None:
        self._sender = sender

    def collect(self) -> Iterable[Metric]:
        """Yield the metric, also without a webhook."""
        messages = CounterMetricFamily(
            "kafka_throttle_webhook_messages",
            "Messages to the webhook: sent, attempts that failed, and states that were dropped, as"
            " another followed too soon or all attempts failed.",
            labels=["result"],
        )
        for result in _RESULTS:
            count = 0 if self._sender is None else self._sender.results[result]
            messages.add_metric([result], count)
        yield messages
