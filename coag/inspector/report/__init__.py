"""Runs as one HTML file that opens anywhere: the inspector's pages, one after the other."""

from .report import Written, write_report

__all__ = ["write_report", "Written"]
