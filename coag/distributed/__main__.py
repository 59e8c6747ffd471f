"""`python -m coag.distributed`."""

from ._app import main

main()
