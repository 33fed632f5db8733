"""What each method of the interface wants to do to which object, and what of its reply is shown: one entry for each method.

`rules` has the forms of entries, `objects`, `transactions` and `server` the entries, `table` joins them, `guard` applies them. It never
decides: `service.authorization` does.
"""
