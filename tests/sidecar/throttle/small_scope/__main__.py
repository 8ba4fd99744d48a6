"""Prints how much the search of each scope visits."""

from tests.sidecar.throttle.small_scope import SCOPES, search

if __name__ == "__main__":
    for name, scope in SCOPES.items():
        print(name, search(scope), flush=True)
