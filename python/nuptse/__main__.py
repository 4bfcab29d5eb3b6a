"""Lets `python -m nuptse` do what the command `nuptse` does."""

from __future__ import annotations

import sys

from nuptse._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
