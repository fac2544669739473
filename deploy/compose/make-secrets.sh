#!/bin/sh
# Creates the secrets that compose.yaml mounts. Existing ones are not changed.
set -eu
umask 077
folder="$(dirname "$0")/secrets"
mkdir -p "$folder"
cd "$folder"

random() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
make() {
  [ -e "$1" ] && return
  printf '%s' "$2" > "$1"
  # The containers read the files as various users. The mode of the folder keeps other users of this machine out.
  chmod 0444 "$1"
}

make mongodb_keyfile "$(random)"
make mongodb_root_password "$(random)"
make mongodb_uri "mongodb://chronos:$(random)@mongo-1:27017,mongo-2:27017,mongo-3:27017/chronos?replicaSet=chronos&authSource=admin"
make http_token "$(random)"
make http_read_token "$(random)"
