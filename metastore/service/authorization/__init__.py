"""Decide which accesses a user has: one batched question that every kind of authorization answers. It never looks at a request.

`service.authorizer` has the question, `grants`, `rules_file`, `opa` and `ranger` answer it, `loading` chooses one by the settings, and
`decision` asks about named objects and explains a refusal.
"""
