"""What `simplace.watch` tells of a process, and that it changes nothing there."""
