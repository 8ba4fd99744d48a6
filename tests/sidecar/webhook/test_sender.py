"""When messages are sent, in virtual time, and what a real receiver gets."""

import asyncio
import json
import logging
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from kafka_lab.ports import Ports
from sidecar.control.board import Board
from sidecar.errors import SettingsError
from sidecar.settings import Settings, load, secret_files
from sidecar.settings.values import WebhookFormat
from sidecar.throttle.decision import Decision, VolumeLimit
from sidecar.throttle.memory import Override
from sidecar.throttle.rules import Rules
from sidecar.webhook.capability import WebhookCapability, prepare
from sidecar.webhook.messages import Facts, State, message, signature
from sidecar.webhook.sender import MOST_ATTEMPTS, Hook, NotAllowedError, Sender
from tests.sidecar.control.services import services
from tests.support.raw_server import raw_server
from tests.support.scripted import LIMIT, reading, whole
from tests.support.waiting import SEEN_S, seen

INTERVAL_S = 30.0


class Scene:
    """A board, and a receiver that answers as a test wants."""

    def __init__(self, form: WebhookFormat = "slack", interval_s: float = INTERVAL_S) -> None:
        self.clock = asyncio.get_running_loop().time
        self.board = Board(VolumeLimit(Rules(LIMIT, 300.0), 1.0), self.clock)
        self.began_at = self.clock()
        self.got: list[tuple[float, Any]] = []
        self.tries = 0
        self.answer: int | Exception = 200

        def write(before: State, decision: Decision, facts: Facts) -> list[bytes]:
            return [message(form, before, decision, facts)]

        hook = Hook(write, form == "alertmanager", interval_s, "https://r/", None, self._post)
        self.sender = Sender(hook, self.board, lambda at: at)

    async def _post(self, body: bytes, _headers: Mapping[str, str]) -> int:
        self.tries += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer == 200:
            self.got.append((round(self.clock() - self.began_at), json.loads(body)))
        return self.answer

    def sees(self, available: int) -> None:
        """A poll finds so much available on the only volume."""
        now = self.clock()
        self.board.observe(whole(now, reading(now, 1, available)))

    async def at(self, seconds: float) -> None:
        await asyncio.sleep(self.began_at + seconds - self.clock())

    @property
    def texts(self) -> list[tuple[float, str]]:
        """When each text for Slack came, and its first line without the cluster."""
        return [(at, each["text"].split(": ", 1)[1].split("\n")[0]) for at, each in self.got]


@asynccontextmanager
async def scene(
    form: WebhookFormat = "slack", interval_s: float = INTERVAL_S
) -> AsyncIterator[Scene]:
    made = Scene(form, interval_s)
    task = asyncio.create_task(made.sender.run())
    try:
        yield made
    finally:
        task.cancel()


THROTTLED, RELEASED = (
    "producers would be throttled: the factor is 0",
    "the throttle factor is 1 again",
)


@pytest.mark.looptime
async def test_flapping_is_folded_and_the_last_state_arrives() -> None:
    """A change after a calm time is sent at once, then the last state once per interval."""
    async with scene() as world:
        world.sees(900)
        await world.at(100)
        for second in range(100, 200):
            world.sees(50 if second % 2 == 0 else 900)
            await world.at(second + 1)
        await world.at(1000)
        assert 100 == world.texts[0][0]
        times = [at for at, _ in world.texts]
        assert all(INTERVAL_S <= later - at for at, later in pairwise(times))
        assert RELEASED == world.texts[-1][1]
        assert times[-1] <= 200 + INTERVAL_S
        assert len(times) == world.sender.results["sent"]
        assert world.sender.results["dropped"] > 40


@pytest.mark.looptime
async def test_the_start_is_no_news() -> None:
    """Neither the fallback before the first poll nor its end; one that lasts is told."""
    async with scene() as world:
        await world.at(5)
        world.sees(900)
        await world.at(100)
        assert [] == world.texts
    async with scene() as world:
        await world.at(100)
        assert [(30, "the sidecar can't see the cluster: its fallback applies, 1")] == world.texts


@pytest.mark.looptime
async def test_a_receiver_that_is_down_gets_the_difference(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Attempts are ever rarer and logged once; then it gets the state of that time."""
    caplog.set_level(logging.INFO)
    async with scene() as world:
        world.sees(900)
        await world.at(60)
        world.answer = ConnectionRefusedError(111, "Connection refused")
        world.sees(50)
        await world.at(100)
        assert 6 == world.tries
        world.answer = 503
        await world.at(250)
        world.answer = 200
        await world.at(400)
        assert [(315, THROTTLED)] == [(at, text) for at, text in world.texts]
        assert 8 == world.sender.results["failed"]
        lines = [each for each in caplog.messages if each.startswith("webhook")]
        assert 2 == len(lines)
        assert lines[0].endswith("and is sent again: Connection refused")


@pytest.mark.looptime
async def test_attempts_end(caplog: pytest.LogCaptureFixture) -> None:
    """After about an hour the message is dropped; the next change is told again."""
    async with scene() as world:
        world.sees(900)
        await world.at(60)
        world.answer = 404
        world.sees(50)
        for minute in range(1, 120):
            await world.at(60 + 60 * minute)
            world.sees(50)
        assert MOST_ATTEMPTS == world.tries
        assert "dropped after 20 attempts: the receiver answers 404" in caplog.text
        world.answer = 200
        world.sees(900)
        await world.at(7300)
        assert [(7200, RELEASED)] == world.texts


@pytest.mark.looptime
async def test_a_missing_right_is_logged_once_and_tried_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also if the state is dropped and another follows; after the right is granted, it is used."""
    caplog.set_level(logging.INFO)
    async with scene() as world:
        world.sees(900)
        await world.at(60)
        world.answer = 503
        world.sees(50)
        await world.at(62)
        world.answer = NotAllowedError("grant it")
        for minute in range(200):
            world.sees(50 if minute < 130 else 900)
            await world.at(60 + 60 * minute)
        assert 20 < world.tries <= 2 + 200 / 5
        lines = [each for each in caplog.messages if each.startswith("webhook")]
        again = "webhook: a message was not taken, and is sent again: "
        assert [f"{again}the receiver answers 503", f"{again}grant it"] == lines
        world.answer = 200
        await world.at(15_000)
        assert "webhook: messages are taken again" == caplog.messages[-1]
        assert world.sender.results["failed"] == world.tries - len(world.texts)


@pytest.mark.looptime
async def test_alertmanager_hears_of_an_alert_while_it_lasts() -> None:
    """Each minute, since it would end it otherwise; news does not wait for that."""
    async with scene("alertmanager") as world:
        world.sees(900)
        await world.at(60)
        world.sees(50)
        await world.at(150)
        world.sees(50)
        await world.at(185)
        world.sees(900)
        await world.at(600)
        assert [60, 120, 180, 185] == [at for at, _ in world.got]
        assert ["1970"] == list({each[0]["startsAt"][:4] for _, each in world.got})
        assert 1 == len({each[0]["startsAt"] for _, each in world.got})
        assert world.got[-1][1][0]["endsAt"] < world.got[-2][1][0]["endsAt"]


@pytest.mark.slow
@pytest.mark.looptime
@pytest.mark.parametrize(("interval_s", "outage_s"), [(INTERVAL_S, 180.0), (3600.0, 0.0)])
async def test_an_alert_does_not_end_while_it_lasts(interval_s: float, outage_s: float) -> None:
    """Neither after three minutes without Alertmanager nor because of a long interval."""
    async with scene("alertmanager", interval_s) as world:
        world.sees(900)
        for seconds in range(3600, 8000, 10):
            await world.at(seconds)
            world.sees(50)
            world.answer = 503 if 4000 <= seconds < 4000 + outage_s else 200
        ends = [datetime.fromisoformat(each[0]["endsAt"]).timestamp() for _, each in world.got]
        ends_s = [end - world.began_at for end in ends]
        assert 3600 == world.got[0][0]
        assert 7900 < ends_s[-1]
        assert [] == [at for end, (at, _) in zip(ends_s, world.got[1:], strict=False) if at > end]


@pytest.mark.looptime
async def test_the_attempts_of_each_state_count_for_themselves() -> None:
    """A throttle that begins at the end of a long outage is told after it."""
    async with scene() as world:
        world.sees(900)
        await world.at(60)
        world.answer = 503
        world.board.set_override(Override(1.0, "a migration", world.clock(), 9e9))
        # 1 s to 256 s make 511 s; then an attempt follows every 300 s.
        await world.at(60 + 511 + 300 * (MOST_ATTEMPTS - 11) + 100)
        assert MOST_ATTEMPTS - 1 == world.tries
        world.board.set_override(None)
        world.sees(50)
        await asyncio.sleep(301.0)
        assert MOST_ATTEMPTS == world.tries
        world.answer = 200
        await asyncio.sleep(301.0)
        assert [THROTTLED] == [text for _, text in world.texts]


@pytest.mark.slow
@pytest.mark.looptime
async def test_a_receiver_that_is_down_for_days_while_the_state_changes() -> None:
    """The pause stays five minutes."""
    async with scene() as world:
        world.answer = 503
        for hour in range(24 * 5):
            await world.at(3600 * hour)
            world.board.set_override(Override(1.0, f"number {hour}", world.clock(), 9e9))
        tries = world.tries
        assert tries > 1024
        await asyncio.sleep(3600.0)
        assert 12 == world.tries - tries


@pytest.mark.looptime
async def test_a_board_that_closes() -> None:
    """Nothing is sent any more, and the loop is not kept busy."""
    async with scene() as world:
        world.board.close()
        await world.at(1000)
        assert 0 == world.tries


def webhook(
    board: Board, folder: Path, url: str, form: str, epoch_s: float = 1_700_000_000.0
) -> WebhookCapability:
    """The capability as the daemon builds it."""
    (folder / "secret").write_text("hush\n")
    environ = {
        "SIDECAR_STORAGE_CHECK_INTERVAL": "0s",
        "SIDECAR_WEBHOOK_URL": url,
        "SIDECAR_WEBHOOK_FORMAT": form,
        "SIDECAR_WEBHOOK_INTERVAL": "PT0.001S",
        "SIDECAR_WEBHOOK_SECRET_FILE": str(folder / "secret"),
    }
    return built(load(environ=environ).settings, board, epoch_s)


def built(settings: Settings, board: Board, epoch_s: float = 1_700_000_000.0) -> WebhookCapability:
    parts = services(board, "webhook", wall=lambda at: at + epoch_s)
    capability = prepare(settings)(parts)
    assert isinstance(capability, WebhookCapability)
    return capability


async def test_a_real_receiver_gets_signed_messages(tmp_path: Path) -> None:
    """Its body has the signature that the headers name, also with a secret that changed."""
    got: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        assert "POST /services/T0/key HTTP/1.1" == first
        headers = dict(line.split(": ", 1) for line in lines)
        await got.put((headers, await reader.readexactly(int(headers["Content-Length"]))))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()

    board = Board(VolumeLimit(Rules(LIMIT, 300.0), 1.0), asyncio.get_running_loop().time)
    async with asyncio.timeout(SEEN_S), raw_server(receive) as address:
        capability = webhook(board, tmp_path, f"http://{address}/services/T0/key", "slack")
        (send,) = capability.tasks().values()
        task = asyncio.create_task(send())
        for secret, available in (("hush", 50), ("other", 900)):
            (tmp_path / "secret").write_text(secret)
            capability.reload(load(environ=reloaded(tmp_path)).settings)()
            board.observe(whole(board.now(), reading(board.now(), 1, available)))
            headers, body = await got.get()
            assert "text" in json.loads(body)
            expected = signature(secret, int(headers["Throttle-Timestamp"]), body)
            assert expected["Throttle-Signature"] == headers["Throttle-Signature"]
        task.cancel()


@pytest.mark.parametrize("answer", [b"70000\r\n\r\n" + b"x" * 70_000, b"5\r\n\r\nok"])
async def test_a_status_is_enough(tmp_path: Path, answer: bytes) -> None:
    """A message is taken although the answer's body is too long, or is cut."""

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: " + answer)
        await writer.drain()

    board = Board(VolumeLimit(Rules(LIMIT, 300.0), 1.0), asyncio.get_running_loop().time)
    async with asyncio.timeout(SEEN_S), raw_server(receive) as address:
        capability = webhook(board, tmp_path, f"http://{address}/", "slack")
        (send,) = capability.tasks().values()
        task = asyncio.create_task(send())
        board.observe(whole(board.now(), reading(board.now(), 1, 50)))

        async def results() -> dict[str, float]:
            (messages, _) = capability.metrics()
            return {each.labels["result"]: each.value for each in messages.samples}

        got = await seen("an attempt", results, lambda got: got["sent"] + got["failed"] > 0)
        assert {"sent": 1, "failed": 0, "dropped": 0} == got
        task.cancel()


def reloaded(folder: Path) -> dict[str, str]:
    """The settings of a reload."""
    return {
        "SIDECAR_STORAGE_CHECK_INTERVAL": "0s",
        "SIDECAR_WEBHOOK_URL": "http://x",
        "SIDECAR_WEBHOOK_SECRET_FILE": str(folder / "secret"),
    }


@pytest.mark.parametrize("url", ["hooks.example/s3cr3t", "https://h:s3cr3t", "https://u:s3cr3t@h"])
def test_a_wrong_url_is_never_shown(url: str) -> None:
    """The message names the setting alone; a right one has stars where settings are shown."""
    with pytest.raises(SettingsError) as raised:
        _ = load(
            environ={"SIDECAR_STORAGE_CHECK_INTERVAL": "0s", "SIDECAR_WEBHOOK_URL": url}
        ).settings
    assert "SIDECAR_WEBHOOK_URL" in str(raised.value)
    assert "s3cr3t" not in str(raised.value)


async def test_the_url_may_be_in_a_file_that_changes(tmp_path: Path) -> None:
    """A wrong one changes nothing, and is not shown; it is the file or the setting, not both."""
    file = tmp_path / "url"
    environ = {"SIDECAR_STORAGE_CHECK_INTERVAL": "0s", "SIDECAR_WEBHOOK_URL_FILE": str(file)}
    environ["SIDECAR_WEBHOOK_INTERVAL"] = "PT0.001S"
    settings = load(environ=environ).settings
    assert file in secret_files(settings)
    paths: asyncio.Queue[str] = asyncio.Queue()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await paths.put((await reader.readline()).decode().split()[1])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    board = Board(VolumeLimit(Rules(LIMIT, 300.0), 1.0), asyncio.get_running_loop().time)
    async with asyncio.timeout(SEEN_S), raw_server(receive) as address:
        file.write_text(f"http://{address}/one\n")
        capability = built(settings, board)
        (send,) = capability.tasks().values()
        task = asyncio.create_task(send())
        for path, available in (("/one", 50), ("/two", 900)):
            file.write_text(f"http://{address}{path}")
            capability.reload(settings)()
            board.observe(whole(board.now(), reading(board.now(), 1, available)))
            assert path == await paths.get()
        task.cancel()
    file.write_text("s3cr3t")
    with pytest.raises(SettingsError, match=r"the URL in the webhook's file .*/url is not an addr"):
        capability.reload(settings)
    with pytest.raises(SettingsError, match="URL_FILE: remove it, or SIDECAR_WEBHOOK_URL"):
        _ = load(environ={**environ, "SIDECAR_WEBHOOK_URL": "http://x"}).settings


def test_a_secret_needs_a_url(tmp_path: Path) -> None:
    """And a file that can't be read stops the start."""
    environ = reloaded(tmp_path)
    with pytest.raises(SettingsError, match=r"the webhook's secret file .* can't be read"):
        prepare(load(environ=environ).settings)
    del environ["SIDECAR_WEBHOOK_URL"]
    with pytest.raises(SettingsError, match="SIDECAR_WEBHOOK_SECRET_FILE: needs SIDECAR_WEBHOOK"):
        _ = load(environ=environ).settings


@pytest.mark.package
async def test_a_real_alertmanager(tmp_path: Path) -> None:
    """It takes the messages, shows the alert, and shows it no more after the release."""
    (tmp_path / "config.yaml").write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    assert program is not None, "Alertmanager is missing: tools/prerequisites alertmanager"
    with Ports() as ports:
        port = ports.reserve()
    words = (
        f"--config.file={tmp_path / 'config.yaml'}",
        f"--storage.path={tmp_path}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    )
    url = f"http://127.0.0.1:{port}/api/v2/alerts"
    quiet = asyncio.subprocess.DEVNULL
    running = await asyncio.create_subprocess_exec(program, *words, stderr=quiet)
    board = Board(VolumeLimit(Rules(LIMIT, 300.0), 1.0), asyncio.get_running_loop().time)
    board.observe(whole(board.now(), reading(board.now(), 1, 900)))
    capability = webhook(board, tmp_path, url, "alertmanager", time.time() - board.now())
    (send,) = capability.tasks().values()
    task = asyncio.create_task(send())
    try:
        async with httpx.AsyncClient(timeout=SEEN_S) as client:

            async def names() -> list[str] | None:
                try:
                    found = (await client.get(url)).json()
                except httpx.TransportError:
                    return None
                return [each["labels"]["alertname"] for each in found]

            await seen("Alertmanager answers, without an alert", names, lambda found: found == [])
            for available, expected in ((50, ["KafkaProducersThrottled"]), (900, [])):
                board.observe(whole(board.now(), reading(board.now(), 1, available)))
                await seen(f"the alerts are {expected}", names, lambda got: got == expected)  # noqa: B023
    finally:
        task.cancel()
        running.terminate()
        await running.wait()
