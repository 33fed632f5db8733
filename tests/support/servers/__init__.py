"""The servers of the tests, in processes of their own and in threads, the commands and listeners beside them, and waits for them."""
