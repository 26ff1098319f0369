"""Tools that draw, edit and extend graphs; scoring does not need them."""
