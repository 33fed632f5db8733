"""How a client of a metastore logs in: SASL on the Thrift connection, one module for each mechanism. It never stores a secret.

connect(uri, login=Kerberos())                      the user's tickets, or a keytab
connect(uri, login=Token(text))                     a delegation token
connect(uri, login=Plain("alice", "secret"))        a password, over TLS
    connect(uri)                                    what variables of the environment say, see `client_login.environment`
"""

from metastore.client_login.environment import from_environment
from metastore.client_login.negotiation import ClientLogin, ClientMechanism, LoginError, authenticate
from metastore.client_login.plain import Plain
from metastore.client_login.token import Token

__all__ = ["ClientLogin", "ClientMechanism", "LoginError", "Plain", "Token", "authenticate", "from_environment"]
