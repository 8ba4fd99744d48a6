"""A type of limit needs one setting, and no soft limit, stop line or margin of its own."""

from pathlib import Path
from typing import Annotated

from sidecar.settings import HostPort, KafkaAdmin, Settings
from sidecar.settings.forms import Entry, Makes
from sidecar.settings.keys import stop_line_key
from sidecar.settings.model import Size
from sidecar.settings.report import Problems
from sidecar.settings.rules import check_together
from sidecar.throttle.limits import MinAvailableBytes

FIELD = "storage_per_volume_limit_min_available_files"


class MinAvailableFiles(MinAvailableBytes):
    """Another type of limit, by another unit."""

    name = "min_available_files"


class MoreSettings(Settings):
    """One setting more."""

    storage_per_volume_limit_min_available_files: Annotated[
        Size | None, Makes("limit", MinAvailableFiles)
    ] = None


def checked(*fields: str, **values: object) -> tuple[Settings | None, tuple[str, ...]]:
    """The settings and the problems with these values."""
    entries = {name: Entry("1", name.upper(), "environment") for name in fields}
    entries["kafka_admin_bootstrap_servers"] = Entry("a:1", "SERVERS", "environment")
    problems = Problems(entries, "environment")
    admin = KafkaAdmin(bootstrap_servers=(HostPort("a", 1),))
    each = MoreSettings.model_construct(kafka_admin=admin, **values)  # type: ignore[arg-type]  # any
    return check_together(each, problems), problems.lines()


def test_a_type_of_limit_needs_one_setting() -> None:
    """It is made, and nothing else is needed of it."""
    settings, problems = checked(FIELD, **{FIELD: 7})
    assert () == problems
    assert settings is not None
    assert (MinAvailableFiles(7), None, None) == (
        settings.limit,
        settings.stop_line,
        settings.slope,
    )
    assert stop_line_key(MinAvailableFiles) is None


def test_lines_of_another_type_are_taken_beside_it() -> None:
    """They can be compared on a volume alone."""
    stop, soft = (
        f"storage_per_volume_{each}_min_available_bytes" for each in ("stop", "soft_limit")
    )
    settings, problems = checked(FIELD, stop, soft, **{FIELD: 7, stop: 100, soft: 3})
    assert () == problems
    assert settings is not None
    assert MinAvailableBytes(100) == settings.stop_line


def test_two_limits_are_one_too_many() -> None:
    """All three types are named."""
    ratio = "storage_per_volume_limit_min_available_ratio"
    _, (line,) = checked(FIELD, ratio, **{FIELD: 7, ratio: 0.1})
    assert line.endswith(f"and {FIELD.upper()} is needed; 2 are set")
    assert ratio.upper() in line


def test_a_margin_of_another_type_is_refused() -> None:
    """A margin is in the limit's unit."""
    margin = "storage_release_margin_bytes"
    _, (line,) = checked(FIELD, margin, **{FIELD: 7, margin: 3})
    assert line.startswith(f"{margin.upper()}: must have the unit of the limit, {FIELD.upper()}")


def test_client_quotas_are_set_by_one_part_and_know_topics_by_the_request_log() -> None:
    """A quota source would set the same quotas; Kafka's quotas know no topics."""
    limit = {"storage_per_volume_limit_min_available_bytes": 10}
    both = {"enforcement": "client-quotas", "scope": "volume", "quota_source": "my:quotas"}
    _, problems = checked(*limit, "enforcement", "throttle_scope", "quota_source", **limit, **both)
    assert [
        "THROTTLE_SCOPE: volume needs SIDECAR_REQUEST_LOG_FILE with client-quotas in ENFORCEMENT",
        "QUOTA_SOURCE: can't be set with client-quotas in ENFORCEMENT: both would set the same "
        "quotas",
    ] == list(problems)
    aiven: dict[str, object] = {"aiven_project": "a", "aiven_url": "http://a:1/"}
    aiven["kubernetes_url"] = "http://k/"
    aiven["broker_metrics_urls"] = ((1, "http://b:11001/metrics"),)
    _, problems = checked(*limit, *aiven, **limit, **aiven)
    assert {
        "AIVEN_PROJECT: needs SIDECAR_AIVEN_SERVICE",
        *(
            f"{name}: has no effect without client-quotas in SIDECAR_ENFORCEMENT"
            for name in ("AIVEN_PROJECT", "BROKER_METRICS_URLS")
        ),
        *(
            f"{name}_URL: needs https, since the token would be sent unencrypted"
            for name in ("AIVEN", "KUBERNETES")
        ),
    } == set(problems)
    quotas = {"enforcement": "client-quotas"}
    for more in ({}, {"scope": "volume", "request_log_file": Path("requests.log")}):
        valid, problems = checked(*limit, "enforcement", **limit, **quotas, **more)
        assert () == problems
        assert valid is not None


def test_deletions_need_classes_and_a_place_for_their_journal() -> None:
    """A dry run needs neither."""
    limit = {"storage_per_volume_limit_min_available_bytes": 10}
    _, problems = checked(*limit, "relief_mode", **limit, relief_mode="delete")
    assert [
        "RELIEF_MODE: delete needs SIDECAR_RELIEF_FILE",
        "RELIEF_MODE: delete needs SIDECAR_STATE_FILE",
    ] == list(problems)
    _, problems = checked(*limit, "relief_mode", **limit, relief_mode="dry-run")
    assert () == problems
