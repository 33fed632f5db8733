"""The web console: pages for operators under `/ui`, and the same as JSON under `/api/v1`. It handles neither sockets, Thrift's bytes nor
SQL.

`app` is the ASGI application, `console` calls it from the thread of a connection, both share `visit`. A page is a function in `pages/`
from a visit to a dataclass, which a template in `templates/` shows and `/api/v1` sends. Everything is asked through `Visit.run`, as
Thrift's calls are, with the rights of the visitor.
"""
