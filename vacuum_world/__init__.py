"""The Dynamic Vacuum World of the CoAG paper: rules, server, page, client and tools."""
