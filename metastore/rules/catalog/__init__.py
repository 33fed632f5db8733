"""Tables: their kinds and types, their columns, and the parts of them that a client asks for or can read."""
