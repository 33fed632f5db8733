"""Methods of delegation tokens, and of the tokens and master keys that other servers keep here."""

from __future__ import annotations

from metastore.errors import MetaError
from metastore.methods.accounts import privilege_rules as rules
from metastore.methods.forms.entry import changes, of_one_side, reads
from metastore.methods.forms.undeclared import undeclared
from metastore.service.accounts import delegation_tokens, foreign_tokens

METHODS = of_one_side(
    changes(
        "get_delegation_token",
        lambda call, args: delegation_tokens.issue(call, args.token_owner, args.renewer_kerberos_principal_name),
        rules.BY_LOGIN,
    ),
    changes("renew_delegation_token", lambda call, args: delegation_tokens.renew(call, args.token_str_form), rules.BY_LOGIN),
    changes("cancel_delegation_token", lambda call, args: delegation_tokens.cancel(call, args.token_str_form), rules.BY_LOGIN),
    changes(
        "add_token",
        undeclared(lambda call, args: foreign_tokens.add_token(call, args.token_identifier, args.delegation_token), MetaError),
        rules.BY_LOGIN,
    ),
    changes(
        "remove_token", undeclared(lambda call, args: foreign_tokens.remove_token(call, args.token_identifier), MetaError), rules.BY_LOGIN
    ),
    reads("get_token", undeclared(lambda call, args: foreign_tokens.get_token(call, args.token_identifier), MetaError), rules.BY_LOGIN),
    reads("get_all_token_identifiers", undeclared(lambda call, args: foreign_tokens.get_identifiers(call), MetaError), rules.BY_LOGIN),
    changes("add_master_key", lambda call, args: foreign_tokens.add_master_key(call, args.key), rules.BY_LOGIN),
    changes("update_master_key", lambda call, args: foreign_tokens.update_master_key(call, args.seq_number, args.key), rules.BY_LOGIN),
    changes(
        "remove_master_key", undeclared(lambda call, args: foreign_tokens.remove_master_key(call, args.key_seq), MetaError), rules.BY_LOGIN
    ),
    reads("get_master_keys", undeclared(lambda call, args: foreign_tokens.get_master_keys(call), MetaError), rules.BY_LOGIN),
)
