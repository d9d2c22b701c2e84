"""What a placement means for data: its size, its memory, its way between devices."""
