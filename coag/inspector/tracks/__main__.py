"""`python -m coag.inspector.tracks`: the checks of one run, as `Checks` starts them."""

from ._child import main

main()
