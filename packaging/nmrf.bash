# Completion of the command nmrf for bash. The options come from the command itself
# (nmrf COMMAND --list-options), once per shell and command.
declare -gA _nmrf_options

_nmrf() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} program=${COMP_WORDS[0]}
  local command=${COMP_WORDS[1]} IFS=$'\n'
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" --list-commands 2>/dev/null | cut -f1)
--help
--version" -- "$word")
    return
  fi
  case $command in ''|-*) return ;; esac
  if [ -z "${_nmrf_options[$command]+known}" ]; then
    _nmrf_options[$command]=$("$program" "$command" --list-options 2>/dev/null)
  fi
  local name takes choices=
  while IFS=$'\t' read -r name takes _; do
    [ "$name" = "$before" ] && case $takes in
      *\|*) choices=${takes//|/$'\n'} ;;
    esac
  done <<<"${_nmrf_options[$command]//$'\t\t'/$'\t-\t'}"
  if [ -n "$choices" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(cut -f1 <<<"${_nmrf_options[$command]}")" -- "$word")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F _nmrf nmrf
