"""Runs to look at: a local web app over a folder of logs, and reports that are one file.

What is shown goes one way: `reading` makes `views` out of what runs left, `drawing` makes
pictures and `pages` makes HTML of them; `web` serves those, and `report` writes them into a file.
"""

__all__: list[str] = []
