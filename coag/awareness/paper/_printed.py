"""What the paper prints, to compare with; nothing is computed from it."""

from __future__ import annotations

TABLE_3 = (
    ("1", "Project setup", "4", "8", "0", "0", "1 (progress)"),
    ("2", "Connection error", "6", "9", "1", "1 (threat)", "2 (+failure)"),
    ("3", "Fix + regression", "6", "9", "1+1R", "2 (+threat)", "3 (+discovery)"),
    ("4", "Scope expansion", "8", "15", "1+1R", "3 (+anomaly)", "4 (+branch)"),
)
"""Step, event, goals, entities, errors, attention items, trajectory."""

TABLE_5 = (
    ("1", "Goal creation", "3", "2", "0", "1 (progress)"),
    ("2", "Topic pivot", "5", "4", "1 (transition)", "2 (+pivot)"),
    ("3", "Callback", "6", "4", "2 (+opportunity)", "3 (+progress)"),
    ("4", "Frustration", "7", "5", "3 (+threat)", "4 (+progress)"),
)
"""Step, event, goals, entities, attention items, trajectory."""

TABLE_12 = (
    ("Steps", "4", "4"),
    ("Goals (total / active)", "6 / 6", "6 / 6"),
    ("Entities", "6", "6"),
    ("Attention items", "4", "4"),
    ("Trajectory transitions", "4", "4"),
    ("Scan patterns", "4", "4"),
    ("Injection text", "identical", "identical"),
)
"""Metric, restored after two turns, continuous."""
