"""Answer one call: find its method, judge it, run it, encode the reply."""
