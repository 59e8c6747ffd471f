"""Where an agent's memory lies within the folder that it was given."""

LTM_FOLDER = "long_term"
"""The records: a Chroma."""
PROCEDURES_FILE = "procedures.json"
"""The procedures, with all their versions."""
