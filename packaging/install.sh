#!/bin/sh
# Installs the newest release of plimsoll for this system.
#
#   curl -fsSL https://github.com/plimsoll-rs/plimsoll/releases/latest/download/install.sh | sh
#
# PLIMSOLL_BIN is the folder that the program is put into (default: ~/.local/bin).
# PLIMSOLL_DOWNLOADS is the address of the release's files, for mirrors.
set -eu

downloads=${PLIMSOLL_DOWNLOADS:-https://github.com/plimsoll-rs/plimsoll/releases/latest/download}
bin=${PLIMSOLL_BIN:-$HOME/.local/bin}

fail() {
    echo "plimsoll: $1" >&2
    exit 1
}

case "$(uname -m)" in
    x86_64 | amd64) cpu=x86_64 ;;
    arm64 | aarch64) cpu=aarch64 ;;
    *) fail "there is no binary for $(uname -m); build it with Rust: cargo install plimsoll-cli" ;;
esac
case "$(uname -s)" in
    Linux)
        if ldd --version 2>&1 | grep -qi musl; then
            system=$cpu-unknown-linux-musl
        else
            system=$cpu-unknown-linux-gnu
        fi
        ;;
    Darwin) system=$cpu-apple-darwin ;;
    *) fail "there is no binary for $(uname -s) here; on Windows use npm or pip, elsewhere: cargo install plimsoll-cli" ;;
esac

command -v curl >/dev/null || fail "curl is needed to download the release"
if command -v sha256sum >/dev/null; then
    sum="sha256sum -c -"
elif command -v shasum >/dev/null; then
    sum="shasum -a 256 -c -"
else
    fail "sha256sum or shasum is needed to check the download"
fi

# Everything is done in this folder, so that an interrupted installation leaves the old program whole.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
file=plimsoll-$system.tar.gz
for name in "$file" "$file.sha256"; do
    curl -fsSL --retry 2 -o "$folder/$name" "$downloads/$name" ||
        fail "$downloads/$name cannot be fetched"
done
(cd "$folder" && $sum <"$file.sha256" >/dev/null) || fail "the download of $file is damaged; run this again"
tar -xzf "$folder/$file" -C "$folder"

mkdir -p "$bin" || fail "$bin cannot be created; set PLIMSOLL_BIN to a folder that you may write to"
cp "$folder/plimsoll-$system/plimsoll" "$bin/.plimsoll.new" ||
    fail "$bin cannot be written to; set PLIMSOLL_BIN to a folder that you may write to"
mv "$bin/.plimsoll.new" "$bin/plimsoll"
echo "installed $("$bin/plimsoll" --version) as $bin/plimsoll"
case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "add $bin to your PATH to call it by name: export PATH=\"$bin:\$PATH\"" ;;
esac
