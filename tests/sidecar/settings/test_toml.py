"""Settings from a TOML file."""

from pathlib import Path

import pytest

from sidecar.settings import keys
from sidecar.settings.sources import Source, read_toml


def read(folder: Path, text: str | bytes) -> Source:
    """Reads a file with this text."""
    file = folder / "sidecar.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_toml(file)


def test_every_documented_key_is_taken(tmp_path: Path) -> None:
    """Each setting's TOML key, written out, is that setting."""
    text = "\n".join(f'{keys.toml_key(field)} = "x"' for field in keys.FIELDS)
    reading = read(tmp_path, text)
    assert (set(keys.FIELDS), []) == (set(reading.entries), reading.problems)


@pytest.mark.parametrize(
    "text",
    [
        '[kafka_admin]\nsasl_mechanism = "PLAIN"',
        '[kafka.admin.sasl]\nmechanism = "PLAIN"',
        'kafka.admin.sasl.mechanism = "PLAIN"',
        'kafka_admin_sasl_mechanism = "PLAIN"',
    ],
)
def test_words_may_be_grouped_as_you_like(tmp_path: Path, text: str) -> None:
    """The words in order are the name, so a property's name works too."""
    entry = read(tmp_path, text).entries["kafka_admin_sasl_mechanism"]
    assert ("PLAIN", f"toml {tmp_path}/sidecar.toml") == (entry.value, entry.origin)


def test_values_keep_their_types(tmp_path: Path) -> None:
    """A number is a number and a list is a list, behind a byte order mark too."""
    text = '\ufeffthrottle_factor.fallback = 0\n[kafka_admin]\nbootstrap_servers = ["a:1", "b:2"]'
    entries = read(tmp_path, text).entries
    expected = (0, ["a:1", "b:2"])
    assert expected == (
        entries["throttle_factor_fallback"].value,
        entries["kafka_admin_bootstrap_servers"].value,
    )


@pytest.mark.parametrize(
    ("text", "key", "nearest"),
    [
        ('[http]\nlisten_on = "hunter2"', "http.listen_on", "http.listen"),
        ('stat_file = "hunter2"', "stat_file", "state_file"),
        ("storage = 3", "storage", "storage.check_interval"),
        ('[[http]]\nlisten = "hunter2"', "http", "http.listen"),
        ("[htp]", "htp", "http.listen"),
        ('[kafka_admin.sasl]\npasswort = "hunter2"', "kafka_admin.sasl.passwort", None),
    ],
)
def test_an_unknown_key_names_the_nearest(
    tmp_path: Path, text: str, key: str, nearest: str | None
) -> None:
    """Every key of the file is ours, so none is ignored; values are not shown."""
    (problem,) = read(tmp_path, text).problems
    nearest = nearest or "kafka_admin.sasl_password"
    assert problem.startswith(f"{key} (toml {tmp_path}/sidecar.toml) ")
    assert problem.endswith(f" {nearest}")
    assert "hunter2" not in problem


def test_an_empty_table_sets_nothing(tmp_path: Path) -> None:
    """A table whose lines are commented out is no mistake."""
    reading = read(tmp_path, "[storage]\n[kafka_admin]\n# client_id = 1\n")
    assert ({}, []) == (reading.entries, reading.problems)


def test_one_setting_is_set_once(tmp_path: Path) -> None:
    """Two groupings of the same words are one setting, and neither wins."""
    (problem,) = read(tmp_path, 'log_level = "info"\n[log]\nlevel = "debug"').problems
    assert problem.startswith("log_level (toml ")
    assert problem.endswith("are one setting, set twice")


def test_the_java_clients_other_keys_are_noted(tmp_path: Path) -> None:
    """Keys that tune the Java admin client are accepted, Java classes refused."""
    reading = read(tmp_path, '[kafka_admin]\nretries = 3\nsecurity_providers = "x.Y"')
    assert (1, 1) == (len(reading.notices), len(reading.problems))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a = 1\nb = \n", "line 2"),
        (b"a = " + b"9" * 5000, "can't be read: "),
        (b"a = " + b"[" * 3000, "can't be read: "),
        (b'token_file = "\xff"', "is not UTF-8 at byte 14"),
        (b"a = 1\na = 2\n", "line 2"),
    ],
)
def test_what_is_no_toml_is_a_problem(tmp_path: Path, text: bytes, message: str) -> None:
    """The message has the place of the mistake."""
    reading = read(tmp_path, text)
    (problem,) = reading.problems
    assert message in problem
    assert not reading.readable


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    """A file that was named and isn't there is never taken for an empty one."""
    file = tmp_path / "nothing.toml"
    expected = f"the TOML file {file} can't be read: No such file or directory"
    reading = read_toml(file)
    assert ({}, [expected], False) == (reading.entries, reading.problems, reading.readable)
