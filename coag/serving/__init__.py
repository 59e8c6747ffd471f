"""Small web applications on this machine: how they are served, and what keeps their pages safe.

Nothing here knows what is shown. A page loads nothing from elsewhere, runs nothing but the
scripts that come with the application, and on loopback answers only requests that name it.
"""

from coag._util.sockets import listen

from .server import SafeHeaders, Served, ServingError, allowed_hosts, serve_until_stopped, url_of

__all__ = [
    "Served",
    "ServingError",
    "serve_until_stopped",
    "listen",
    "url_of",
    "SafeHeaders",
    "allowed_hosts",
]
