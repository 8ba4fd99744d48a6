"""The Grafana dashboard, made from code: ``python -m tools.dashboard`` writes its JSON.

What it shows is data (``rows.py``); how that becomes Grafana's is one function for each kind of
panel (``panels.py``). Queries read the sidecars' own metrics, so the dashboard also works where the
recording rules are not loaded; only the list of alerts needs those.
"""
