# shellcheck shell=bash disable=SC2034
# Sourced by scripts/test and by .ci/*: headings, time per step, stop at the first failure.
#   step TITLE COMMAND...   runs the command; on failure says which step failed and how to repeat it, and exits.

iwarp_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

step() {
  local title=$1 begin=$SECONDS status=0
  shift
  printf '\n== %s\n' "$title"
  "$@" || status=$?
  if [ $status -ne 0 ]; then
    printf '== FAILED after %d s: %s (exit status %d)\n   command: %s\n' $((SECONDS - begin)) "$title" $status "$*" >&2
    exit $status
  fi
  printf '== ok, %d s: %s\n' $((SECONDS - begin)) "$title"
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
