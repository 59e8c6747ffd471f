"""Tools without a theory that every room of `coag` uses; one copy of each.

`timeouts` waits for foreign code, `files` writes files whole or not at all, `locks` keeps other
processes out, `text` makes foreign text safe to show, `secrets` takes keys out of it,
`json_schemas` checks values in bounded time, `json_diff` compares and patches JSON, `svg` draws.

Import from the modules (`from coag._util.text import one_line`), so that a room loads only what
it uses. Nothing here is public.
"""

__all__: list[str] = []
