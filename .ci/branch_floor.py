"""Fails where fewer branches are covered than the floor says: `branch_floor.py REPORT PERCENT`.

`--cov-fail-under` counts lines and branches together, so that many covered lines can hide
branches that no test takes.
"""

import json
import sys
from pathlib import Path

report, floor = Path(sys.argv[1]), float(sys.argv[2])
totals = json.loads(report.read_text(encoding="utf-8"))["totals"]
covered = 100 * totals["covered_branches"] / max(1, totals["num_branches"])
if covered < floor:
    sys.exit(f"{covered:.1f} % of the branches are covered; at least {floor:g} % must be.")
sys.stdout.write(f"{covered:.1f} % of the branches are covered.\n")
