"""Sockets, TLS, signals and the settings of the port."""
