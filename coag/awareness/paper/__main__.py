"""`python -m coag.awareness.paper`: the paper's tables, made again."""

import sys

from ._writing import report


def main() -> int:
    """Prints the report; 0 if every table agrees, else 1."""
    text, agrees = report()
    sys.stdout.write(text)
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
