"""Serve the Thrift interface: sockets, transports, protocols, limits, dispatch. This package never runs SQL or touches files."""
