"""`python -m coag.inspector.tracks`: the checks of one run, as `Checks` starts them."""

from .child import main

main()
