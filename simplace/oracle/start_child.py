"""The file that Python runs as a child process: frames of it are known as simplace's, unlike those of `-c`."""

import sys
from importlib import import_module

if __name__ == "__main__":
    searched, module, given, parent = sys.argv[1:]
    sys.path[0] = searched
    import_module(module).main(given, int(parent))
