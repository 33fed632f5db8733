"""Use cases: one module per noun, one function per operation. Nothing here depends on the Thrift protocol or on SQL."""
