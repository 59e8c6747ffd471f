"""`coag` gives AutoGen agents a mind that can be inspected."""
