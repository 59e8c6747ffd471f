"""Parts of `coag` for agents of other frameworks; each framework has a room or a file of its own.

`agent_framework` is Microsoft's Agent Framework, and needs its package. `agent_hooks` is the
contract between any framework and whoever judges its calls. Nothing is imported before it is
asked for by its own name.
"""
