"""Serve the Thrift interface: sockets, transports, protocols, limits, dispatch. It never runs SQL or touches files."""
