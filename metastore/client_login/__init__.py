"""Logins of a client to a metastore: SASL on the Thrift connection, or a header of HTTP. It never stores a secret.

connect(uri, login=Kerberos())                      the user's tickets, or a keytab
connect(uri, login=Token(text))                     a delegation token
connect(uri, login=Plain("alice", "secret"))        a password, over TLS
connect("https://host:9083/metastore", login=Bearer(text))    a JSON web token, over HTTP; Plain serves there too
    connect(uri)                                    by variables of the environment, see `client_login.environment`
"""

from metastore.client_login.bearer import Bearer
from metastore.client_login.environment import from_environment
from metastore.client_login.negotiation import ClientLogin, ClientMechanism, LoginError, authenticate
from metastore.client_login.plain import Plain
from metastore.client_login.token import Token

__all__ = ["Bearer", "ClientLogin", "ClientMechanism", "LoginError", "Plain", "Token", "authenticate", "from_environment"]
