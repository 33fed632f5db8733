"""Answer one call: find its method, check the caller's rights, run it, encode the reply."""
