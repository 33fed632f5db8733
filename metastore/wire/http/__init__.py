"""HTTP on the server's port: Thrift, probes, metrics, the console."""
