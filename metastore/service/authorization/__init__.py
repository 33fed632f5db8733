"""Decide what a user may do: one batched question that every kind of authorization answers. It never looks at a request.

`contract` has the question, `grants`, `rules_file`, `opa` and `ranger` answer it, `loading` chooses one by the settings, and
`decision` puts the question about named objects and says what was missing.
"""
