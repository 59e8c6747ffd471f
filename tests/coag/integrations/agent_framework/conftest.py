"""Tests of what needs the Agent Framework; left out where it is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("agent_framework") else ["test_*.py"]
