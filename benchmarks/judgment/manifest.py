"""An agent's capabilities, made for these measurements: 45 of nine fields, and 249 edges.

The paper's own manifest is not published. Ours has the names that its Table 3 tells (`web_fetch`,
`write`, `foundry_metrics`); the rest are tools that agents commonly have.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

FIELDS: dict[str, dict[str, str]] = {
    "research": {
        "web_fetch": "Fetches a web page and returns its text",
        "web_search": "Searches the internet and lists pages",
        "read_paper": "Reads a scientific article and extracts its findings",
        "summarize": "Condenses long documents into key points",
        "cite_sources": "Collects references and formats citations",
    },
    "build": {
        "write": "Writes a file with source code or text",
        "edit": "Changes lines of an existing file",
        "compile": "Builds a program from its source code",
        "run_tests": "Runs the test suite and reports failures",
        "refactor": "Restructures code without changing what it does",
    },
    "monitor": {
        "foundry_metrics": "Reads metrics of running services, such as load and latency",
        "tail_logs": "Follows the log files of a service",
        "check_health": "Asks a server whether it is up and healthy",
        "raise_alert": "Notifies the operator on call of an incident",
        "trace_requests": "Follows a slow request through services",
    },
    "data": {
        "query_database": "Runs an SQL query on tables",
        "clean_table": "Removes duplicates and fills missing values of a dataset",
        "plot_chart": "Draws a chart of columns of numbers",
        "fit_model": "Fits a regression and reports its coefficients",
        "export_csv": "Saves a table as a spreadsheet file",
    },
    "people": {
        "send_email": "Sends an email message to a person",
        "read_inbox": "Reads new mail and marks what is urgent",
        "schedule_meeting": "Finds a free hour in calendars and invites people",
        "post_message": "Posts a chat message in a team channel",
        "translate": "Translates a letter into another language",
    },
    "deploy": {
        "build_image": "Packs an application into a container image",
        "release": "Rolls a new version out to production",
        "roll_back": "Returns production to the previous version",
        "scale_cluster": "Adds or removes machines of a cluster",
        "rotate_secrets": "Replaces keys and passwords of the infrastructure",
    },
    "memory": {
        "remember": "Stores a fact in long-term memory",
        "recall": "Finds earlier notes about a subject",
        "tag_note": "Labels a note by its subject",
        "forget": "Deletes an outdated note",
        "link_notes": "Connects notes that belong together",
    },
    "money": {
        "pay_invoice": "Pays a bill by bank transfer",
        "check_budget": "Compares spending with the budget",
        "convert_currency": "Converts an amount at today's exchange rate",
        "file_expense": "Records a receipt as an expense",
        "forecast_cash": "Projects income and spending of coming months",
    },
    "media": {
        "draw_image": "Generates a picture from a description",
        "crop_photo": "Cuts and resizes a photograph",
        "transcribe_audio": "Turns a recording of speech into text",
        "edit_video": "Cuts clips of a film together",
        "speak": "Reads text aloud with a synthetic voice",
    },
}
TASKS: dict[str, tuple[str, ...]] = {
    "research": (
        "Research what scientific articles say about sleep",
        "Find pages on the internet about solar panels",
        "What does the literature report on this drug?",
    ),
    "build": (
        "Build a parser: source code and a file of tests",
        "Fix the bug in the program and see that tests pass",
        "Implement the new feature in the codebase",
    ),
    "monitor": (
        "Monitor load and latency of our services",
        "Why was the server down at night? Look at its logs",
        "Watch for outages and wake somebody up",
    ),
    "data": (
        "Analyse the dataset of sales and draw a chart",
        "How many customers left, by the tables of the database?",
        "Look for a trend in these measurements",
    ),
    "people": (
        "Answer the urgent mail and invite people to a meeting",
        "Tell the team in chat that the date has moved",
        "Arrange a call with our partners in Spain",
    ),
    "deploy": (
        "Roll the new version out to production",
        "Pack the application into a container for the cluster",
        "The last update broke everything, undo it",
    ),
    "memory": (
        "Store this fact and connect it with earlier notes",
        "What did we write down about this subject?",
        "Tidy up what is outdated in the knowledge base",
    ),
    "money": (
        "Pay the bill and record the receipt as an expense",
        "Do we spend more than the budget allows?",
        "Will we be able to afford the new office?",
    ),
    "media": (
        "Generate a picture from a description, then resize it",
        "Make text from the recording of a speech",
        "Prepare the trailer for our film festival",
    ),
}
"""By field: one task in words that its capabilities have, and some in other words."""
FIVE = ("research", "build", "monitor", "people", "media")
"""The fields whose first tasks are the paper's five contexts; it names the first three."""


def capabilities(seed: int, *, shuffled: bool = True) -> list[dict[str, Any]]:
    """All of them, with expectations drawn by a seed."""
    draw = random.Random(f"capabilities {seed}")
    made = [
        {
            "name": name,
            "summary": summary,
            "keywords": (field,),
            "utility": round(draw.uniform(0.3, 0.7), 3),
            "cost": round(draw.uniform(0.02, 0.2), 3),
        }
        for field, own in FIELDS.items()
        for name, summary in own.items()
    ]
    if shuffled:
        draw.shuffle(made)
    return made


def manifest(seed: int, edges: int = 249, *, shuffled: bool = True) -> dict[str, Any]:
    """Capabilities and edges: a circle through all, the rest drawn, half of them within a field."""
    listed = capabilities(seed, shuffled=shuffled)
    by_name, draw = {one["name"]: one for one in listed}, random.Random(f"edges {seed}")
    names = sorted(by_name)
    around = draw.sample(names, len(names))
    pairs = dict.fromkeys(zip(around, [*around[1:], around[0]], strict=True))
    while len(pairs) < edges:
        source = draw.choice(names)
        near = sorted(FIELDS[field_of(source)])
        target = draw.choice(near if draw.random() < 0.5 else names)
        if source != target:
            pairs[source, target] = None
    return {
        "capabilities": listed,
        "edges": [
            {
                "source": source,
                "target": target,
                "utility": by_name[target]["utility"],
                "cost": by_name[target]["cost"],
            }
            for source, target in pairs
        ],
    }


def field_of(name: str) -> str:
    """The field that a capability belongs to."""
    return next(field for field, own in FIELDS.items() if name in own)


def texts_of(listed: Sequence[dict[str, Any]]) -> list[str]:
    """What is embedded of each capability."""
    return [f"{one['name'].replace('_', ' ')}: {one['summary']}" for one in listed]
