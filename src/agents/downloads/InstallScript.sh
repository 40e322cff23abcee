#!/bin/sh
# Installs signalbox-agent from @SERVER_COMMENT@ for the person who runs this:
# fetches the build for this machine, checks its SHA-256, and puts it into ~/.local/bin (or SIGNALBOX_AGENT_DIR).
# It touches nothing else, asks for no password, and needs curl or wget.
set -eu

say() {
  printf '%s\n' "$*"
}

fail() {
  printf 'signalbox-agent was not installed: %s\n' "$*" >&2
  exit 1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# linux-x64, linux-arm64-musl, darwin-arm64 …; empty for an unknown platform
platform() {
  case "$(uname -m)" in
    x86_64 | amd64) machine=x64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) return 0 ;;
  esac
  case "$(uname -s)" in
    Linux)
      if (ldd --version 2>&1 || true) | grep -qi musl; then
        say "linux-$machine-musl"
      else
        say "linux-$machine"
      fi
      ;;
    Darwin)
      # A shell that Rosetta translates says x86_64 on Apple silicon.
      if [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" = 1 ]; then machine=arm64; fi
      say "darwin-$machine"
      ;;
  esac
}

fetch() {
  if has curl; then
    curl --fail --silent --show-error --location --retry 3 --output "$2" -- "$1"
  elif has wget; then
    wget -q -O "$2" -- "$1"
  else
    fail "neither curl nor wget is here"
  fi
}

sha256_of() {
  if has sha256sum; then
    sha256sum <"$1" | cut -d ' ' -f 1
  elif has shasum; then
    shasum -a 256 <"$1" | cut -d ' ' -f 1
  elif has openssl; then
    openssl dgst -sha256 <"$1" | sed 's/.* //'
  else
    fail "nothing here computes a SHA-256 (sha256sum, shasum or openssl)"
  fi
}

# Whether there is a Node that runs the build for any system.
has_node() {
  has node && node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 19) ? 0 : 1)'
}

# Sets filename and sha256 for a platform; fails if the server has no build for it.
choose() {
  case "$1" in
    # @CHOICES@
    *) return 1 ;;
  esac
}

cleanup() {
  if [ -n "${unfinished:-}" ]; then rm -rf -- "$unfinished"; fi
}

main() {
  server=@SERVER@
  if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ]; then
    fail "run it as yourself, without sudo: it goes into your own home directory"
  fi
  directory=${SIGNALBOX_AGENT_DIR:-${HOME:?HOME is not set}/.local/bin}
  name=$(platform)
  if ! choose "$name"; then
    if has_node && choose node; then
      say "There is no build for ${name:-this system} on the server; taking the one that runs with your Node."
    else
      fail "the server has no build for ${name:-$(uname -s) $(uname -m)}, and there is no Node 22.19 or later here"
    fi
  fi

  mkdir -p -- "$directory"
  unfinished=$(mktemp -d "$directory/.signalbox-agent.XXXXXX")
  trap cleanup EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  say "Fetching $filename from $server"
  fetch "$server/api/v1/agent/downloads/$filename" "$unfinished/fetched" || fail "it could not be fetched"
  found=$(sha256_of "$unfinished/fetched")
  [ "$found" = "$sha256" ] || fail "what came is not what the server has: SHA-256 $found, and not $sha256"
  case "$filename" in
    *.gz) gzip -dc <"$unfinished/fetched" >"$unfinished/signalbox-agent" ;;
    *) mv -- "$unfinished/fetched" "$unfinished/signalbox-agent" ;;
  esac
  chmod 755 "$unfinished/signalbox-agent"
  if ! version=$("$unfinished/signalbox-agent" --version); then
    case "$filename" in
      *-musl*) fail "it was fetched whole, but does not run here. It needs libstdc++ (Alpine: apk add libstdc++)" ;;
      *) fail "it was fetched whole, but does not run on this machine" ;;
    esac
  fi
  mv -f -- "$unfinished/signalbox-agent" "$directory/signalbox-agent"
  say "Installed $version as $directory/signalbox-agent"
  case ":${PATH:-}:" in
    *":$directory:"*) ;;
    *) say "Add it to your PATH:  export PATH=\"$directory:\$PATH\"" ;;
  esac
  say "Next:  signalbox-agent login   (the server is $server)"
}

# At the end, so that a script that was cut off does nothing.
main "$@"
