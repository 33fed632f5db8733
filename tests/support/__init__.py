"""Helpers that several suites share: databases, servers, engines, and short forms of frequent calls. It holds no tests."""
