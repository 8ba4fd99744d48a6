"""``python -m sidecar``: the same as ``throttle-sidecar``."""

from sidecar.cli import main

if __name__ == "__main__":
    main()
