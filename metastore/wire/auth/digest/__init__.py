"""DIGEST-MD5, by which tokens log in."""
