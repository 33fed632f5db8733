"""Users, roles, groups, tokens."""
