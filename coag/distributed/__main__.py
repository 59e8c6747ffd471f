"""`python -m coag.distributed`."""

from .app import main

main()
