"""Definitions of transactional tables, and the requests to the metastore for them."""
