"""Child processes that can be killed: with limits of time and memory, a stream of messages, or a server."""
