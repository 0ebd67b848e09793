"""Running a command so that it sees the machine and changes nothing but the workspace.

Guarantees, by the kernel, what docs/run/safety.md says of commands.

Found by its name in ``modeshift.tools.processes.sandboxes``; nothing imports it.

To change what commands see of the machine, or what is hidden, open ``mounts``; what is protected
in the workspace, ``scan`` and ``mounts``; when folders are read again, ``scan`` and
``folder_watcher``; what is said of it, ``sandbox``; system calls, ``seccomp``; what git does,
``git``.
"""
