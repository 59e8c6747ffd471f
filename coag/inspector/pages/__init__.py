"""The inspector's HTML: what the views hold, on pages and in one file, from the same templates.

Every text in a view comes out of a log, so it is untrusted. It is always escaped, it never gets
into an attribute that runs, and characters that cannot be seen or that steer a terminal are shown
by name. Nothing is inline: one style and a few ES modules come with the package, and every page
works without the scripts. Where a page leads to is asked of `Addresses`: the web's, or those
within one file.
"""

from .addresses import Addresses, Place, ReportAddresses, Target, WebAddresses
from .environment import prepare
from .pages import Fragments, Pages
from .report import report_page
from .static_files import MEDIA_TYPES, SCRIPTS, STYLE, static_text

__all__ = [
    "Pages",
    "Fragments",
    "Addresses",
    "WebAddresses",
    "ReportAddresses",
    "Place",
    "Target",
    "report_page",
    "prepare",
    "STYLE",
    "SCRIPTS",
    "MEDIA_TYPES",
    "static_text",
]
