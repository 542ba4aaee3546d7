# ~/.profile: read by every command in the sandbox (bash -l), so nothing here starts a process.
# Installers of languages add their PATH to ~/.bashrc: it counts here too.

[ ! -r ~/.bashrc ] || . ~/.bashrc
