"""Methods of roles, privileges and tokens."""
