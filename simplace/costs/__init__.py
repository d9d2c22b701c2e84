"""How long ops and copies take, and what that is computed from."""
