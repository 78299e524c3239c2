# shellcheck shell=bash disable=SC2034
# Sourced by our scripts, before they leave the directory that they were started in. For scripts/test: headings, time per step, stop at
# the first failure.
#   step TITLE COMMAND...   runs the command; on failure says which step failed and how to repeat it, and exits. Exit status 77:
#                           it cannot be had on this machine; collected in not_run.
#   within SECONDS COMMAND...   runs the command, and ends it with all that it started when it takes longer.
#   help_text   prints the comment at the head of the script, from the second line on.

iwarp_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
iwarp_script=$(realpath "$0")

help_text() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$iwarp_script"; }

# Says which file systems have almost no room, as what a compiler says of it is easily overlooked.
full_disks() {
  local place mib
  for place in "$iwarp_root" "${TMPDIR:-/tmp}"; do
    mib=$(df --output=avail -BM "$place" 2>/dev/null | tail -n 1 | tr -dc 0-9) || true
    [ "${mib:-1024}" -ge 1024 ] || printf '   %s has %d MiB free: too little to build and test in\n' "$place" "$mib"
  done
}

not_run=()
step() {
  local title=$1 begin=$SECONDS status=0
  shift
  printf '\n== %s\n' "$title"
  "$@" || status=$?
  if [ $status -eq 77 ]; then # not to be had here; the command has said why
    printf '== NOT RUN: %s\n' "$title"
    not_run+=("$title")
    return
  fi
  if [ $status -ne 0 ]; then
    printf '== FAILED after %d s: %s (exit status %d)\n   command: %s\n' $((SECONDS - begin)) "$title" $status "$*" >&2
    full_disks >&2
    exit $status
  fi
  printf '== ok, %d s: %s\n' $((SECONDS - begin)) "$title"
}

within() {
  local limit=$1 status=0 pid
  shift
  # In the background: bash handles signals during `wait`, and timeout hands them on.
  timeout -k 30 "$limit" "$@" &
  pid=$!
  trap 'kill -TERM $pid 2>/dev/null' INT TERM HUP
  wait $pid || status=$?
  if kill -0 $pid 2>/dev/null; then wait $pid || status=$?; fi
  trap - INT TERM HUP
  if [ $status -eq 124 ] || [ $status -eq 137 ]; then echo "== ended after its limit of $limit s: $*" >&2; fi
  return $status
}

# The options that every configuration of ours gets, so that one never rebuilds what another has built. Warnings are gcc's to
# judge: configure_options fuzz, for clang, does not make them errors.
configure_options() {
  [ "${1:-}" = fuzz ] || echo -DIWARP_WERROR=ON
  if command -v ccache >/dev/null; then echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
}

# Runs the command; its output is shown only when it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if [ $status -ne 0 ]; then cat "$log" >&2; fi
  rm -f "$log"
  return $status
}
