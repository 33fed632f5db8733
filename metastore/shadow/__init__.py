"""A proxy that answers from one metastore, asks another the same reads, and counts where they agree.

`proxy` takes connections, `relay` passes messages on, `asking` is the process that asks the other side and compares.
"""
