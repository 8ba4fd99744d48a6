"""The findings about room to make, storage budgets and reserves, where they are set."""

from dataclasses import replace

import pytest

from sidecar.cli.doctor.facts import Facts, Relief
from sidecar.cli.doctor.findings import findings
from sidecar.cli.doctor.room_findings import METADATA, REPORTERS, RESERVE
from sidecar.throttle.budgets import Budget
from tests.sidecar.cli.doctor.installation import CONFIGS, GB, WHOLE, reader, sidecar

NAMES = {"making room", "budgets", "reserve"}
LINES = {**CONFIGS, RESERVE: None, REPORTERS: "a.B,throttlesidecar.ReserveReporter"}
RELIEF = Relief("delete", ("logs", "d*"), topics=["debug", "logs"])
OWNER = {"owner": "etl", "soft_bytes": 10, "hard_bytes": 20}
FILE = {"log_dir": "/data", "bytes": GB}
SIDECARS = tuple(
    sidecar(
        each,
        relief={"mode": "delete", "failure": ""},
        budgets=(OWNER,),
        readers=(reader(each, reserves=[FILE]),),
    )
    for each in range(3)
)
ROOM = replace(
    WHOLE,
    relief=RELIEF,
    budgets=(Budget("etl", 20, 10),),
    brokers=tuple(replace(each, configs=LINES) for each in WHOLE.brokers),
    sidecars=SIDECARS,
)


def last_sidecar(**more: object) -> Facts:
    """The sidecar beside broker 2 shows something else."""
    return replace(ROOM, sidecars=(*SIDECARS[:2], replace(SIDECARS[2], **more)))  # type: ignore[arg-type]


def reserves(*files: dict[str, object]) -> Facts:
    """Broker 2 reports these."""
    return last_sidecar(readers=(reader(2, reserves=files),))


def without_reporter(metadata: str | None) -> Facts:
    """Broker 2 lacks the reporter, and has its metadata log there."""
    configs = {**LINES, REPORTERS: "a.B", METADATA: metadata}
    return replace(ROOM, brokers=(*ROOM.brokers[:2], replace(ROOM.brokers[2], configs=configs)))


def relief(**more: object) -> Facts:
    """The cluster shows something else of the declared topics."""
    return replace(ROOM, relief=replace(RELIEF, **more))  # type: ignore[arg-type]


def rows(facts: Facts) -> list[tuple[str, str, str]]:
    """The rows about room, each with what to do."""
    found = [each for each in findings(facts) if each.name in NAMES]
    return [(each.name, each.verdict, f"{each.what} -> {each.to_do}") for each in found]


def test_what_is_set_has_rows() -> None:
    """All is OK; without the features there is no row. A metadata log elsewhere can be opened."""
    found = rows(ROOM)
    assert {(each, "ok") for each in NAMES} == {each[:2] for each in found}
    texts = "\n".join(text for *_, text in found)
    assert "delete: declared topics that can be read and deleted from: 2" in texts
    assert "brokers 0, 1, 2 have a reserve of 1.0 GB or more in each log dir" in texts
    off = replace(WHOLE, brokers=(replace(WHOLE.brokers[0], configs={**CONFIGS, RESERVE: "0"}),))
    assert [] == rows(off)
    elsewhere = without_reporter("/other")
    assert {"ok"} == {verdict for _, verdict, _ in rows(elsewhere)}


@pytest.mark.parametrize(
    ("facts", "name", "verdict", "sentence"),
    [
        (relief(topics=["debug"]), "making room", "warn", "describe matches logs -> correct"),
        (relief(undeletable=["logs"]), "making room", "fail", "--operation Delete --topic 'logs'"),
        (relief(left_out={"logs": "compact"}), "making room", "warn", "from logs: compact"),
        (relief(groups_unknown="no ACL"), "making room", "warn", "no ACL -> grant Describe on gr"),
        (relief(problem="no answer"), "making room", "not known", "no answer -> mend"),
        (last_sidecar(relief={"mode": "dry-run"}), "making room", "fail", "b2:7070: not delete"),
        (
            last_sidecar(relief={"mode": "delete", "failure": "[[ is not TOML"}),
            "making room",
            "warn",
            "http://b2:7070 can make no room: [[ is not TOML",
        ),
        (last_sidecar(budgets=({**OWNER, "hard_bytes": 9},)), "budgets", "fail", "b2:7070: not"),
        (
            replace(ROOM, sidecars=tuple(replace(each, budgets=()) for each in SIDECARS)),
            "budgets",
            "not known",
            "no sidecar shows",
        ),
        (reserves(), "reserve", "warn", "broker 2 has no reserve in /data, though"),
        (reserves({**FILE, "bytes": 0}), "reserve", "fail", "broker 2 has started from the re"),
        (last_sidecar(readers=()), "reserve", "not known", "broker 2 has reserve.bytes, and reads"),
        (
            without_reporter(None),
            "reserve",
            "fail",
            "broker 2 does not have kafka.metrics.reporters",
        ),
        (without_reporter("/data"), "reserve", "fail", "opens its metadata log before it releases"),
    ],
)
def test_what_is_wrong_is_found(facts: Facts, name: str, verdict: str, sentence: str) -> None:
    """One row says what to do; the others stay OK."""
    bad = [each for each in rows(facts) if each[1] != "ok"]
    assert [(name, verdict)] == [each[:2] for each in bad]
    assert sentence in bad[0][2]
