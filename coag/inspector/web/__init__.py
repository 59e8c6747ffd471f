"""The inspector as a local web application: every page is made here, on this machine.

It reads logs and changes nothing. On a loopback address it answers only who names it, and what
it shows can load nothing from elsewhere.
"""

from .app import create_app
from .desk import Desk
from .serve import Inspector, serve_inspector

__all__ = ["create_app", "Desk", "Inspector", "serve_inspector"]
