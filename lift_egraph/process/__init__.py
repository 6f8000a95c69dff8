"""Child processes that can be killed, with limits of time and memory: a stream of messages, a server, or one call.

`child` is for use, `child_process` is the parent's side of one child, `child_main` the child's own;
`interrupts` sees to it that Ctrl-C ends what waits.
"""
