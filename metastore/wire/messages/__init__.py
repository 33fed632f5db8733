"""Messages of Thrift: read, written, and large replies."""
