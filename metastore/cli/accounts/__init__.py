"""Commands of users and tokens."""
