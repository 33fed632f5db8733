"""What several suites share: databases, servers, engines, and short forms of what tests ask for. It holds no tests."""
