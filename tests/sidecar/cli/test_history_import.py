"""``throttle-sidecar history import``."""

import json
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group, history_import
from sidecar.history.reader import HistoryReader
from sidecar.volumes import Reading, Volume
from tests.support.background import Canned, reply

BEGIN_S = 1_767_600_000
CLAIM = r"persistentvolumeclaim=(?P<dir>data-\d+)-my-cluster-kafka-(?P<broker>\d+)"
STRIMZI = ("--match", CLAIM, "--log-dir", "/var/lib/kafka/{dir}/kafka-log{broker}")
LIMIT = {"SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "30"}


def run(*args: object) -> Result:
    return CliRunner().invoke(group, ["history", "import", *map(str, args)])


def answer(*metrics: str, step_s: int = 300, count: int = 24) -> dict[str, object]:
    """Three brokers' volumes of 100 bytes: 60 are available, and 20 in the later half."""
    result: list[dict[str, object]] = []
    for metric in metrics:
        for broker in range(3):
            labels = {"persistentvolumeclaim": f"data-0-my-cluster-kafka-{broker}"}
            values = [
                [
                    BEGIN_S + number * step_s,
                    "100" if "capacity" in metric else "60" if number < count / 2 else "20",
                ]
                for number in range(count)
            ]
            name = f"kubelet_volume_stats_{metric}_bytes"
            result.append({"metric": {"__name__": name, **labels}, "values": values})
    web = {"__name__": "kubelet_volume_stats_capacity_bytes", "persistentvolumeclaim": "web-0"}
    result.append({"metric": web, "values": [[BEGIN_S, "1"]]})
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


@pytest.fixture
def kubelet(tmp_path: Path) -> Path:
    """Two hours of three brokers."""
    file = tmp_path / "kubelet.json"
    file.write_text(json.dumps(answer("capacity", "available")))
    return file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_prometheus_becomes_a_history(kubelet: Path, tmp_path: Path) -> None:
    """With a file for each hour, which replay-decisions reads; what is not Kafka's is named."""
    out = tmp_path / "new" / "history"
    result = run("--prometheus", kubelet, *STRIMZI, "--out", out)
    assert (
        0,
        "72 readings of 3 volumes of 3 brokers from 2026-01-05 08:00:00 to 2026-01-05 09:55:00 UTC:"
        f" 2 files in {out}\n",
        "Left out, because no --match fits, or it is not total or available bytes:"
        ' kubelet_volume_stats_capacity_bytes{file="kubelet.json", persistentvolumeclaim="web-0"},'
        " 1 value\n",
    ) == (result.exit_code, result.stdout, result.stderr)
    expected = [f"volumes-imported-20260105T{hour}.jsonl.gz" for hour in ("08", "09")]
    assert expected == names(out)
    first, *_ = HistoryReader(out, 300.0).observations()
    assert BEGIN_S == first.observed_at
    volume = Volume(1, "/var/lib/kafka/data-0/kafka-log1", 100, 60)
    assert Reading(1, BEGIN_S, (volume,)) == first.answers[1]
    replay = (
        CliRunner().invoke(group, ["replay-decisions", "--history", str(out)], env=LIMIT).stdout
    )
    assert "24 observations" in replay
    assert "1 throttle, 55 min together (47.83% of the time)" in replay


def test_log_dirs_with_other_seconds_are_one_throttle(tmp_path: Path) -> None:
    """As raw samples of two targets have them: 60 throttles would be untrue."""
    result = [
        {
            "metric": {"__name__": name, "dir": f"/data{number}", "host": "3"},
            "values": [
                [BEGIN_S + 60 * minute + 2 * number, str(full if minute >= 60 else size)]
                for minute in range(120)
            ],
        }
        for number, full in enumerate((60, 20))
        for name, size, full in (("size", 100, 100), ("avail", 60, full))
    ]
    file, out = tmp_path / "raw.json", tmp_path / "out"
    data = {"resultType": "matrix", "result": result}
    file.write_text(json.dumps({"status": "success", "data": data}))
    rules = ("--match", r"host=(?P<broker>\d+)", "--log-dir", "{dir}")
    imported = run("--prometheus", file, *rules, "--out", out)
    assert imported.stdout.startswith("240 readings of 2 volumes of 1 broker from"), imported.output
    words = ["replay-decisions", "--history", str(out), "--json"]
    replay = json.loads(CliRunner().invoke(group, words, env=LIMIT).stdout)
    expected = ["2026-01-05T09:00:02.000Z"]
    assert expected == [each["from"] for each in replay["throttles"]]


def test_a_url_is_asked_with_the_token(canned: Canned, tmp_path: Path) -> None:
    """The query is encoded, unless it already is; the two answers are put together."""
    token = tmp_path / "token"
    token.write_text("s3cr3t\n")
    urls = []
    for metric in ("capacity", "available"):
        query = f'kubelet_volume_stats_{metric}_bytes{{namespace=~"kafka.+"}}'
        encoded = quote(query, safe="=") if metric == "capacity" else quote_plus(f"( {query} )")
        canned.answers[f"GET /api/v1/query_range?query={encoded}&step=300"] = reply(answer(metric))
        given = query if metric == "capacity" else encoded
        urls += ["--prometheus", f"{canned.url}/api/v1/query_range?query={given}&step=300"]
    result = run(*urls, *STRIMZI, "--token-file", token, "--out", tmp_path / "out")
    assert 0 == result.exit_code, result.output
    assert "72 readings of 3 volumes of 3 brokers" in result.stdout
    assert {"Bearer s3cr3t"} == {each.headers["Authorization"] for each in canned.asked}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/nothing", "/nothing answered 404 Not Found: {}"),
        (
            "/long",
            "/long is longer than 1,000 bytes: query fewer series, a longer step or a shorter",
        ),
    ],
)
def test_a_url_that_has_no_answer(
    canned: Canned,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    expected: str,
) -> None:
    """Its address is named, without the query."""
    monkeypatch.setattr(history_import, "LONGEST_ANSWER", 1000)
    canned.answers["GET /long?query=x"] = reply(answer("capacity"))
    result = run("--prometheus", f"{canned.url}{path}?query=x", *STRIMZI, "--out", tmp_path / "out")
    assert 2 == result.exit_code
    assert f"{canned.url}{expected}" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("url", ["http://me:s3cr3t@localhost/", "http://me:s3cr/et@localhost/"])
def test_a_url_with_a_password_is_refused(tmp_path: Path, url: str) -> None:
    """And is not repeated."""
    result = run("--prometheus", url, *STRIMZI, "--out", tmp_path / "out")
    assert 2 == result.exit_code
    assert "a URL with a user or a password; a token comes from --token-file\n" == result.stderr


def test_csv_and_df_are_read_too(tmp_path: Path) -> None:
    """A log for each broker, named by its file; times without an offset need a zone."""
    for broker in (1, 2):
        (tmp_path / f"kafka-{broker}.df").write_text(
            "2026-01-05 08:00:00\nFilesystem 1B-blocks Used Avail Mounted on\n"
            f"/dev/root 9 1 8 /\n/dev/sdb1 100 40 {60 + broker} /data\n"
        )
    table = tmp_path / "table.csv"
    table.write_text("Time,host,size,avail\n2026-01-05 08:05:00,3,100,70\n")
    logs = [word for broker in (1, 2) for word in ("--df", tmp_path / f"kafka-{broker}.df")]
    rules = ("--match", r"file=kafka-(?P<broker>\d+)\.df", "--match", "mountpoint=/data")
    out = tmp_path / "out"
    refused = run(*logs, *rules, "--log-dir", "{mountpoint}", "--out", out)
    assert (2, False) == (refused.exit_code, out.exists())
    assert "kafka-1.df, line 1: '2026-01-05 08:00:00' has no offset from UTC" in refused.stderr
    result = run(*logs, *rules, "--log-dir", "{mountpoint}", "--zone", "UTC", "--out", out)
    assert 0 == result.exit_code, result.output
    assert 'filesystem="/dev/root", mountpoint="/"' in result.stderr
    host = ("--match", r"host=(?P<broker>\d+)", "--log-dir", "/data", "--zone", "UTC")
    other = tmp_path / "other"
    assert 0 == run("--csv", table, *host, "--out", other).exit_code
    assert [(1, 61), (2, 62), (3, 70)] == [
        (volume.broker_id, volume.available_bytes)
        for folder in (out, other)
        for each in HistoryReader(folder, 300.0).observations()
        for answer in each.answers.values()
        for volume in (answer.volumes if isinstance(answer, Reading) else ())
    ]


def test_nothing_is_overwritten_without_being_told(kubelet: Path, tmp_path: Path) -> None:
    """Other files of the folder are left alone in any case."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "volumes-a-20260105T08.jsonl").write_text("")
    hour = out / "volumes-imported-20260105T09.jsonl.gz"
    hour.write_bytes(b"before")
    before = names(out)
    result = run("--prometheus", kubelet, *STRIMZI, "--out", out)
    assert 2 == result.exit_code
    assert f"{out} has 1 file of the same hours, such as {hour.name}: import all" in result.stderr
    assert "With --overwrite, all readings in these files are lost" in result.stderr
    assert (before, b"before") == (names(out), hour.read_bytes())
    assert 0 == run("--prometheus", kubelet, *STRIMZI, "--out", out, "--overwrite").exit_code
    assert sorted([*before, "volumes-imported-20260105T08.jsonl.gz"]) == names(out)
    assert b"before" != hour.read_bytes()


def test_a_failed_write_leaves_nothing(kubelet: Path, tmp_path: Path) -> None:
    """A file that can't be written is found before any is moved to its place."""
    out = tmp_path / "out"
    (out / "volumes-imported-20260105T09.jsonl.gz.tmp").mkdir(parents=True)
    result = run("--prometheus", kubelet, *STRIMZI, "--out", out)
    assert 2 == result.exit_code
    assert "can't be written" in result.stderr
    assert ["volumes-imported-20260105T09.jsonl.gz.tmp"] == names(out)


def test_data_that_no_rule_fits(kubelet: Path, tmp_path: Path) -> None:
    """The series are named, with what makes one a size."""
    rule = ("--match", r"pod=(?P<broker>\d+)", "--log-dir", "/d")
    result = run("--prometheus", kubelet, *rule, "--out", tmp_path / "out")
    assert 2 == result.exit_code
    assert 7 == result.stderr.count("Left out, because")
    assert "there is no reading: a reading needs the total and the available" in result.stderr


def test_sizes_without_the_other_are_named(tmp_path: Path) -> None:
    """As when one of the two queries is missing, or a store did not answer."""
    file = tmp_path / "total.json"
    file.write_text(json.dumps({**answer("capacity"), "warnings": ["no store"]}))
    result = run("--prometheus", file, *STRIMZI, "--out", tmp_path / "out")
    assert 2 == result.exit_code
    assert "Warning: total.json: readings may be missing: no store\n" in result.stderr
    log_dir = "/var/lib/kafka/data-0/kafka-log0"
    assert (
        f"Left out of broker 0 {log_dir}: 24 values without total or available bytes of the same"
    ) in result.stderr


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), "name what to read"),
        (("--df", "x", "--match", "file"), "'file' is not LABEL=REGEX"),
        (("--df", "x", "--match", "file=("), "'(' is not a regular expression"),
        (("--df", "x"), "name the broker once"),
        (("--df", "x", "--broker", "1", "--match", r"file=(?P<broker>\d)"), "name the broker once"),
        (("--df", "x", "--broker", "1", "--zone", "Mars"), "'Mars' is not a time zone"),
        (("--df", "no.df", "--broker", "1"), "no.df can't be read: No such file"),
        (("--prometheus", "http://[::1:9/", "--broker", "1"), "not a URL: its host or port"),
        (("--prometheus", "http://me:se?cret@h/", "--broker", "1"), "URL: its host or port is not"),
    ],
)
def test_wrong_options_are_refused(args: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    """With what is wrong, and exit code 2."""
    result = run(*args, "--log-dir", "/d", "--out", tmp_path / "out")
    assert (2, True) == (result.exit_code, expected in result.stderr), result.stderr


@pytest.mark.parametrize("time", ["20260105", "2026", "20260105080000", "0", "9e99"])
def test_a_number_that_is_hardly_a_time_is_refused(tmp_path: Path, time: str) -> None:
    """A date without separators is no epoch second of 1970, nor a year of the far future."""
    file, out = tmp_path / "a.json", tmp_path / "out"
    values = [[float(time), "100"]]
    result = [{"metric": {"__name__": name}, "values": values} for name in ("size", "avail")]
    data = {"resultType": "matrix", "result": result}
    file.write_text(json.dumps({"status": "success", "data": data}))
    table = tmp_path / "a.csv"
    table.write_text(f"time,size,avail\n{time},100,50\n")
    volume = ("--broker", "1", "--log-dir", "/d", "--out", out)
    for words in (("--prometheus", file), ("--csv", table)):
        refused = run(*words, *volume)
        assert 2 == refused.exit_code
        is_text = time == "9e99" and "--csv" in words
        expected = "is not a time" if is_text else "is not between the years 2000 and 2100"
        assert expected in refused.stderr
    assert not out.exists()


def test_grafana_s_download_for_excel_is_read(tmp_path: Path) -> None:
    """It is in UTF-16 and has tabs."""
    table = tmp_path / "a.csv"
    text = '\ufeff"Time"\t"size"\t"avail"\r\n1767600000000\t100\t70\r\n\r\n'
    table.write_bytes(text.encode("utf-16-le"))
    result = run("--csv", table, "--broker", "1", "--log-dir", "/d", "--out", tmp_path / "out")
    assert 0 == result.exit_code, result.output
    assert result.stdout.startswith("1 reading of 1 volume of 1 broker from 2026-01-05 08:00:00")


def test_a_file_that_is_not_text_names_the_line(tmp_path: Path) -> None:
    """It may be compressed."""
    file = tmp_path / "a.csv"
    file.write_bytes(b"time,size\n\xff")
    result = run("--csv", file, "--broker", "1", "--log-dir", "/d", "--out", tmp_path / "out")
    assert f"{file}, line 2: it is not text in UTF-8\n" == result.stderr
