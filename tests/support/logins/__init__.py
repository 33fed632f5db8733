"""A Kerberos realm, an LDAP server, an issuer of tokens, certificates, and a server that asks for a login."""
