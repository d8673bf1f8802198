#!/bin/sh
# Fetches freely licensed photographs from Debian's wallpaper packages, for `nmrf synth --textures DIR`.
#
#   scripts/fetch_textures.sh DIR
#
# Needs apt-get and dpkg-deb (Debian, Ubuntu), no root and no installation: about 200 MB are downloaded
# to a temporary folder, unpacked there, and the pictures copied to DIR with the packages' licence
# texts in DIR/licences. Prints DIR and the number of pictures. The licences are listed in NOTICE.
set -eu

if [ $# -ne 1 ] || [ "$1" = "-h" ] || [ "$1" = "--help" ]; then
  sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
target=$1
packages="gnome-backgrounds mate-backgrounds plasma-workspace-wallpapers ukui-wallpapers
lomiri-wallpapers-16.04 lomiri-wallpapers-20.04"

for tool in apt-get dpkg-deb; do
  command -v "$tool" >/dev/null || { echo "fetch_textures: $tool is missing; this script needs Debian or Ubuntu" >&2; exit 1; }
done
mkdir -p "$target/licences"
target=$(cd "$target" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work"

for package in $packages; do
  if ! apt-get download "$package" >/dev/null 2>"$work/error"; then
    echo "fetch_textures: $package left out: $(tail -n 1 "$work/error") (try: apt-get update)" >&2
    continue
  fi
  rm -rf unpacked
  dpkg-deb -x ./*.deb unpacked
  rm -f ./*.deb
  cp "unpacked/usr/share/doc/$package/copyright" "$target/licences/$package.txt"
  # Plain files only: the packages link one picture under many sizes. Small ones are previews.
  find unpacked -type f -size +60k \( -name '*.jpg' -o -name '*.jpeg' -o -name '*.png' -o -name '*.webp' \) \
      ! -name 'screenshot.*' | sort | while read -r file; do
    # unpacked/usr/share/wallpapers/Altai/contents/images/5120x2880.png -> Altai-5120x2880.png
    name=$(echo "${file#unpacked/usr/share/}" | sed 's,^\(wallpapers\|backgrounds\)/,,; s,/contents/images,,; s,/,-,g')
    cp "$file" "$target/$package-$name"
  done
done

count=$(find "$target" -maxdepth 1 -type f | wc -l)
[ "$count" -gt 0 ] || { echo "fetch_textures: no picture could be fetched" >&2; exit 1; }
echo "$target: $count pictures"
