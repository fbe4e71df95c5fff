#!/bin/sh
# Makes a session, prompts it, and prints the facts of the turn, one JSON line each. When the connection breaks it goes
# on where it was. Needs curl; with jq the lines are shorter.
#
#   examples/follow.sh "add a test for the parser"
#   ANSWER=once examples/follow.sh "add a test"      answers every permission; else the line to do it is printed
set -eu
base=${TOLKA:-http://127.0.0.1:4096}
text=$(printf '%s' "${1:-Show me what you can do.}" | sed 's/\\/\\\\/g; s/"/\\"/g')

call() { curl -sS --fail-with-body ${TOLKA_TOKEN:+-H "authorization: Bearer $TOLKA_TOKEN"} "$@"; }
field() { grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }
if command -v jq >/dev/null; then show() { printf '%s\n' "$1" | jq -c '{seq, type, data}' | cut -c1-160; }
else show() { printf '%s\n' "$1"; }; fi

session=$(call "$base/v1/sessions" -d '{}' | field id)
accepted=$(call "$base/v1/sessions/$session/prompt" -d "{\"text\":\"$text\"}")
turn=$(printf '%s' "$accepted" | field turn)
state=$(mktemp)
trap 'rm -f "$state"' EXIT
printf '%s' "$accepted" | field position >"$state"
echo "$base/s/$session" >&2

# The stream of a turn ends with it. An empty line stands between events, so a position is kept only after its data.
until grep -q over "$state"; do
  call -N -H "last-event-id: $(cat "$state")" "$base/v1/sessions/$session/events?turn=$turn" 2>/dev/null | while IFS= read -r line; do
    case $line in
    "id: "*) position=${line#id: } ;;
    "data: "*)
      show "${line#data: }"
      echo "$position" >"$state"
      case $line in
      *'"type":"permission_asked"'*)
        answer="$base/v1/sessions/$session/answers/$(printf '%s' "$line" | field request)"
        if [ -n "${ANSWER:-}" ]; then call "$answer" -d "{\"option\":\"$ANSWER\"}"; else echo "curl $answer -d '{\"option\":\"once\"}'" >&2; fi ;;
      *'"type":"turn_ended"'*) echo over >"$state" ;;
      esac ;;
    esac
  done
  grep -q over "$state" || sleep 0.5
done
