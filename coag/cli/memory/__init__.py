"""`coag memory`: reading and correcting what an agent remembers.

Commands are declared in `_app`, quick to import; what they do is in modules that are imported when
one is run. What records say is untrusted: characters that do not show are written out.
"""

from .app import app

__all__ = ["app"]
