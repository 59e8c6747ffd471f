"""`python -m coag.awareness.perception`."""

import sys

from coag.awareness.perception.agreement import main

sys.exit(main(sys.argv[1:]))
