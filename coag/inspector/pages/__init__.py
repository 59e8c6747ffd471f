"""The inspector's HTML: views on pages and in one file, from the same templates.

Every text in a view comes out of logs, so it is untrusted. It is always escaped, it never gets
into an attribute that runs, and characters that cannot be seen or that steer a terminal are shown
by name. Nothing is inline: one style and a few ES modules come with the package, and every page
works without the scripts. `Addresses` says where links lead: on the web, or within one file.
"""

from .render import MEDIA_TYPES, Addresses, Pages, prepare, report_page, static_text

__all__ = ["Pages", "Addresses", "report_page", "prepare", "MEDIA_TYPES", "static_text"]
