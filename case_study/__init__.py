"""The CoAG case study: agents, episodes, temperaments, runner, measures."""
