"""Methods of delegation tokens, and of the tokens and master keys that other servers keep here."""

from __future__ import annotations

from metastore.errors import MetaError
from metastore.methods.forms.entry import Handler
from metastore.methods.forms.undeclared import undeclared
from metastore.service.accounts import delegation_tokens, foreign_tokens

METHODS: dict[str, Handler] = {
    "get_delegation_token": lambda call, args: delegation_tokens.issue(call, args.token_owner, args.renewer_kerberos_principal_name),
    "renew_delegation_token": lambda call, args: delegation_tokens.renew(call, args.token_str_form),
    "cancel_delegation_token": lambda call, args: delegation_tokens.cancel(call, args.token_str_form),
    "add_token": undeclared(lambda call, args: foreign_tokens.add_token(call, args.token_identifier, args.delegation_token), MetaError),
    "remove_token": undeclared(lambda call, args: foreign_tokens.remove_token(call, args.token_identifier), MetaError),
    "get_token": undeclared(lambda call, args: foreign_tokens.get_token(call, args.token_identifier), MetaError),
    "get_all_token_identifiers": undeclared(lambda call, args: foreign_tokens.get_identifiers(call), MetaError),
    "add_master_key": lambda call, args: foreign_tokens.add_master_key(call, args.key),
    "update_master_key": lambda call, args: foreign_tokens.update_master_key(call, args.seq_number, args.key),
    "remove_master_key": undeclared(lambda call, args: foreign_tokens.remove_master_key(call, args.key_seq), MetaError),
    "get_master_keys": undeclared(lambda call, args: foreign_tokens.get_master_keys(call), MetaError),
}
