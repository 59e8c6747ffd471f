"""`python -m examples.minigrid ...`: `case-study assess`, in MiniGrid."""

from __future__ import annotations

import sys

from case_study.__main__ import main

if __name__ == "__main__":
    sys.argv[1:1] = ["assess", "--domain", "examples.minigrid:DOMAIN"]
    main()
