"""Tests of `metastore.transfer`."""
