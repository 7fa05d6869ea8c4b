"""Published packages under check; `make clients` installs them. Nothing of theirs is here."""
