"""Use cases: one module per noun, one function per operation. Knows neither the Thrift protocol nor SQL."""
