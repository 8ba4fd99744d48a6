"""Rows of tables as the report takes them."""

from datetime import UTC, datetime, timedelta

from usage_pipeline.report import Row

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
GB = 10**9


def usage(second: int, user: str, amount: float, quota_type: str = "produce") -> Row:
    return {
        "broker": second % 3,
        "user": user,
        "client_id": "",
        "quota_type": quota_type,
        "window_start": datetime(2026, 1, 5, 8, tzinfo=UTC) + timedelta(seconds=second),
        "amount": amount,
        "events": 4,
        "throttled": 1,
        "throttle_ms": 1500,
        "lower_bound": quota_type == "request",
    }


def forecast(
    broker: int,
    early: float | None,
    expected: float | None,
    late: float | None,
    refused: str | None = None,
) -> Row:
    """Returns one of 500 GB with 200 used and the limit at 400; hours are from ``NOW``."""
    return {
        "broker": broker,
        "log_dir": "/data",
        "as_of": NOW,
        "total_bytes": 500 * GB,
        "available_bytes": 300 * GB,
        "limit_bytes": 100 * GB,
        "growth_bytes_per_hour": 4e8,
        "hours_to_limit": expected,
        "hours_low": early,
        "hours_high": late,
        "history_hours": 48.0,
        "teeth": 3,
        "backtest_error_bytes": None,
        "refused": refused,
    }


def reading(hours: float, available: int | None) -> Row:
    """Returns one of broker 1, so many hours before ``NOW``; offline it has no available bytes."""
    return {
        "broker": 1,
        "log_dir": "/data",
        "observed_ts": NOW - timedelta(hours=hours),
        "total_bytes": None if available is None else 500 * GB,
        "available_bytes": available,
    }
