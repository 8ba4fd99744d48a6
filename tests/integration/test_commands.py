"""The commands that a person runs, on a real cluster and real daemons."""

import asyncio
import json
import socket
from pathlib import Path

from sidecar.demo.cluster import Cluster
from tests.integration.conftest import Start
from tests.integration.daemon import FULL_BYTES, LIMIT_BYTES, Done, command, settings

COLUMNS = 80


def table(done: Done) -> tuple[list[str], str]:
    """The lines of the table, none too long, and the sentence after it."""
    *lines, sentence = done.out.splitlines()
    assert [] == [line for line in lines if len(line) > COLUMNS]
    return lines, sentence


def log_dirs(lines: list[str]) -> str:
    """The table's second column, whose cells go on in lines that have nothing else."""
    return "".join(line.split()[0 if line[:8].isspace() else 1] for line in lines[2:])


async def test_check_tells_by_its_exit_code_and_a_table(kafka: Cluster) -> None:
    """0 within the limit, 1 with the full volume in the table, 2 while a broker hangs."""
    environ = settings(kafka.bootstrap) | {"COLUMNS": str(COLUMNS)}
    within = await command("check", environ=environ)
    assert (0, "") == (within.code, within.err)
    lines, sentence = table(within)
    assert sentence.startswith("Within limit: ")
    assert "6 volumes, 3 brokers" in sentence
    assert 6 == sum(line.rstrip().endswith(" ok") for line in lines)
    paths = [volume.path for broker in kafka.brokers.values() for volume in broker.volumes]
    assert "".join(paths) == log_dirs(lines)

    await kafka.occupy(2, 1, FULL_BYTES)
    violated = await command("check", environ=environ)
    assert (1, "") == (violated.code, violated.err)
    lines, sentence = table(violated)
    (row,) = [line for line in lines if line.rstrip().endswith(" VIOLATED")]
    assert "2" == row.split()[0]
    assert f"{LIMIT_BYTES / 1e6:.1f} MB" in row
    assert sentence.startswith(f"Limit violated: broker 2 {kafka.brokers[2].volumes[1].path} has")

    await kafka.occupy(2, 1, 0)
    await kafka.pause_broker(1)
    unknown = await command("check", environ=environ)
    assert 2 == unknown.code
    (line,) = unknown.err.splitlines()
    assert line.startswith("Could not tell: neither seen nor remembered: broker 1 ")
    assert "no answer in time" in line


async def test_check_says_when_there_is_no_cluster() -> None:
    """Exit code 2 and one line with the address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*taken.getsockname())
        done = await command("check", environ=settings(address))
    assert (2, "") == (done.code, done.out)
    (line,) = done.err.splitlines()
    assert line.startswith("Could not tell: no broker told which brokers there are: ")
    assert address in line


async def test_an_override_is_set_shown_and_cleared_on_all_sidecars_at_once(
    kafka: Cluster, start: Start, tmp_path: Path
) -> None:
    """Each tells its own answer, and obeys; one that takes no changes makes the exit code 1."""
    token = tmp_path / "token"
    token.write_text("a-token\n")
    environ = settings(kafka.bootstrap, TOKEN_FILE=str(token))
    daemons = await asyncio.gather(*(start(kafka, environ) for _ in kafka.brokers))
    for daemon in daemons:
        await daemon.decides(1.0)
    sidecars = ("--sidecars", ",".join(daemon.url for daemon in daemons))
    change = (*sidecars, "--token-file", str(token))

    words = ("set", "0.5", "--reason", "a migration", "--for", "PT10M")
    done = await command("override", *words, *change, environ={})
    assert (0, "") == (done.code, done.err)
    for daemon in daemons:
        document = await daemon.factor()
        assert (0.5, "override") == (document["factor"], document["source"])
        assert daemon.url in done.out

    done = await command("override", "show", *sidecars, "--json", environ={})
    assert (0, "") == (done.code, done.err)
    shown = json.loads(done.out)["sidecars"]
    assert [daemon.url for daemon in daemons] == [each["sidecar"] for each in shown]
    assert {"a migration"} == {each["answer"]["override"]["reason"] for each in shown}

    done = await command("override", "clear", *change, environ={})
    assert (0, "") == (done.code, done.err)
    for daemon in daemons:
        document = await daemon.factor()
        assert (1.0, "observation") == (document["factor"], document["source"])

    without_token = await start(kafka, settings(kafka.bootstrap))
    everyone = ("--sidecars", f"{sidecars[1]},{without_token.url}", "--token-file", str(token))
    done = await command("override", *words, *everyone, environ={})
    assert 1 == done.code
    assert "SIDECAR_TOKEN_FILE" in done.said
    assert "override" != (await without_token.factor())["source"]
    assert "override" == (await daemons[0].factor())["source"]
